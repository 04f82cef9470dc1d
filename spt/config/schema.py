"""The keys of an experiment, their types, defaults and bounds.

Names are those of transformers' `TrainingArguments`, peft and datasets where they have one.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from spt.config.augment import Augment
from spt.config.evaluate import Evaluate
from spt.config.permute import Permute
from spt.config.questions import Questions
from spt.config.segment import Segment
from spt.config.train import Train
from spt.config.values import Number, OneOrMore, PositiveInt, Section, Text


class Fields(Section):
    """Which fields of a row hold what: `text`, or `prompt` and `completion`, joined exactly as given."""

    text: Text | None = None
    prompt: Text | None = None
    completion: Text | None = None
    id: Text = "id"

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if (self.prompt is None) != (self.completion is None):
            raise ValueError("prompt and completion go together")
        if self.text is not None and self.prompt is not None:
            raise ValueError("give either text, or prompt and completion")
        return self

    @property
    def text_fields(self) -> tuple[str, ...]:
        """Return the fields joined into a record's text, in their order."""
        if self.prompt is not None and self.completion is not None:
            return (self.prompt, self.completion)
        return (self.text or "text",)


class Source(Section):
    """Where a corpus lies: files (`path`: a file, glob, folder, or `-`), or a dataset of the Hub (`hub`)."""

    place: ClassVar[str] = "data.train"
    """The key of a config that it stands under."""
    path: OneOrMore | None = None
    hub: Text | None = None
    name: Text | None = None
    split: Text = "train"
    data_files: OneOrMore | None = None
    revision: Text | None = None
    fields: Fields = Fields()

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.hub is None):
            raise ValueError("give either path (a file, a glob, a folder, or -) or hub (a dataset id)")
        hub_only = [key for key in ("name", "data_files", "revision") if getattr(self, key) is not None]
        # The default is no sign that a split was asked for.
        hub_only += ["split"] if self.split != "train" else []
        if self.hub is None and hub_only:
            raise ValueError(f"{', '.join(hub_only)}: only for a Hub dataset; give hub instead of path, or remove it")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths given, as a tuple."""
        return (self.path,) if isinstance(self.path, str) else self.path or ()


class Mix(Source):
    """General text learned beside the facts, never permuted: `share` of the examples, from its first `limit` texts."""

    place: ClassVar[str] = "data.mix"
    share: Annotated[float, Number, Field(gt=0, lt=1)] = 0.2
    limit: PositiveInt | None = None


class Data(Section):
    """What is learned, what is asked, and what happens to a bad row."""

    train: Source | None = None
    questions: Questions | None = None
    mix: Mix | None = None
    on_error: Literal["stop", "reject"] = "stop"
    limit: PositiveInt | None = None
    segmented: Text | None = None
    shard_size: PositiveInt = 10_000

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.train is None and self.segmented is None:
            raise ValueError("give train (a corpus) or segmented (the segmented data of another run)")
        return self


class FromScratch(Section):
    """A model without pretraining: `config` in transformers' own keys, and a tokenizer trained on the corpus."""

    config: dict[str, Any]
    vocab_size: PositiveInt = 1000

    @model_validator(mode="after")
    def _typed(self) -> Self:
        if "model_type" not in self.config:
            raise ValueError("config needs a model_type, such as llama")
        return self


class Model(Section):
    """What is trained: a base (Hub id, folder, or .gguf file) or a model from scratch, whole or through LoRA."""

    base: Text | None = None
    revision: Text | None = None
    from_scratch: FromScratch | None = None
    dtype: Literal["float32", "bfloat16"] = "float32"
    lora: dict[str, Any] | None = None
    attn_implementation: Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3"] | None = None
    load_in_4bit: bool = False
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if (self.base is None) == (self.from_scratch is None):
            raise ValueError("give either base (a Hub id, a folder, or a .gguf file) or from_scratch")
        if self.from_scratch is not None and self.lora is not None:
            raise ValueError("lora adapts a pretrained base; a model from scratch is trained whole")
        return self


class Config(Section):
    """One experiment."""

    name: Annotated[Text, Field(min_length=1)]
    seed: Annotated[int, Number, Field(ge=0, lt=2**63)] = 0
    output: Text = ""
    data: Data
    segment: Segment = Segment()
    augment: tuple[Augment, ...] = ()
    permute: Permute = Permute()
    model: Model
    train: Train = Train()
    evaluate: Evaluate = Evaluate()

    @property
    def signs(self) -> tuple[str, ...]:
        """Return what the method writes into texts and is no text itself: delimiter, sentinels, masks."""
        return tuple(dict.fromkeys((*self.permute.signs, *(sign for entry in self.augment for sign in entry.signs))))

    @model_validator(mode="after")
    def _best_needs_questions(self) -> Self:
        train = self.train
        asked = {
            "metric_for_best_model": train.metric_for_best_model,
            "early_stopping_patience": train.early_stopping_patience,
            "load_best_model_at_end": train.load_best_model_at_end,
        }
        wanted = [key for key, value in asked.items() if value]
        if wanted and (train.eval_steps is None or self.data.questions is None):
            raise ValueError(
                f"train.{wanted[0]} needs train.eval_steps and data.questions: answers are what is watched"
            )
        return self

    @model_validator(mode="after")
    def _fim_moves_text(self) -> Self:
        if "fim" in self.permute.all_orders and self.segment.segmenter == "token":
            raise ValueError("permute.orders: fim moves text, not tokens; give another segment.segmenter, such as word")
        return self

    @model_validator(mode="after")
    def _every_phase_reached(self) -> Self:
        late = [phase.epoch for phase in self.permute.curriculum if phase.epoch >= (self.train.epochs or float("inf"))]
        if late:
            raise ValueError(
                f"permute.curriculum: epoch {late[0]} is never reached: train.epochs is {self.train.epochs:g}, and the "
                "first epoch is 0"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _default_output(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("output") and values.get("name"):
            return {**values, "output": f"runs/{values['name']}"}
        return values
