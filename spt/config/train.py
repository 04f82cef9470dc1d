"""The section `train`: its keys, their types, defaults and bounds.

Names are those of transformers' `TrainingArguments` where it has one.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from spt.config.values import Fraction, Integer, NonNegative, Number, OneOrMore, Positive, PositiveInt, Section, Text

Schedule = Literal[
    "constant",
    "constant_with_warmup",
    "cosine",
    "cosine_with_min_lr",
    "cosine_with_restarts",
    "inverse_sqrt",
    "linear",
    "polynomial",
    "warmup_stable_decay",
]


class Train(Section):
    """The training loop. `batch_size` counts examples in a global step, whatever the number of devices.

    How long it goes on is said in `epochs` (default: 3; `max_steps` ends it sooner), or in `max_tokens`: as many steps
    as are expected to see that many tokens, padding not counted.
    `dataloader_num_workers` (default: 1 beside an accelerator, 0 on the CPU) changes nothing that is drawn.
    """

    objective: Literal["causal", "bico", "mlm_u"] = "causal"
    loss_on: Literal["sequence", "completion"] = "sequence"
    epochs: PositiveInt | None = None
    max_steps: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    batch_size: PositiveInt = 16
    micro_batch_size: PositiveInt = 16
    max_length: Annotated[int, Number, Field(ge=4)] = 512
    too_long: Literal["truncate", "reject"] = "truncate"
    learning_rate: Positive = 1e-4
    lr_scheduler_type: Schedule = "cosine"
    lr_scheduler_kwargs: dict[str, Any] = Field(default={})
    warmup_ratio: Fraction = 0.03
    weight_decay: NonNegative = 0.0
    adam_beta1: Fraction = 0.9
    adam_beta2: Fraction = 0.999
    max_grad_norm: Positive = 1.0
    packing: bool = False
    gradient_checkpointing: bool = False
    torch_compile: bool = False
    dataloader_num_workers: Integer | None = None
    logging_steps: PositiveInt = 10
    save_steps: PositiveInt | None = None
    save_total_limit: PositiveInt = 2
    eval_steps: PositiveInt | None = None
    eval_questions: PositiveInt = 200
    metric_for_best_model: Text | None = None
    early_stopping_patience: PositiveInt | None = None
    load_best_model_at_end: bool = False
    report_to: OneOrMore = "none"
    hub_model_id: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_epochs(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("epochs") is None and values.get("max_tokens") is None:
            return {**values, "epochs": 3}
        return values

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.max_tokens is not None and (self.epochs is not None or self.max_steps is not None):
            raise ValueError("max_tokens decides how long training goes on; set epochs and max_steps to null")
        return self

    @model_validator(mode="after")
    def _whole_rows(self) -> Self:
        if self.packing and self.objective != "causal":
            raise ValueError(f"packing: {self.objective} attends to both sides of whole rows; use packing: false")
        return self
