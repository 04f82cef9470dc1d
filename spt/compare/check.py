"""What can be known to be wrong before the first cell starts.

In: the plans. Out: nothing, or the error that a cell would meet, with its name. Trade-off: a pretrained model is not
loaded here, so that one which cannot do a method's objective is found by the first of its cells.
"""

from collections.abc import Callable, Sequence
from typing import Any

from spt.artifact import dump_json
from spt.compare.grid import Plan
from spt.config import Config
from spt.errors import SptError

Check = Callable[[Plan], Any]


def check_plans(plans: Sequence[Plan]) -> None:
    """Return nothing; raise what the first cell that cannot run would raise, its name behind it."""
    done: set[str] = set()
    for plan in plans:
        for check, reads in ((_check_data, _DATA), (_check_model, _MODEL)):
            part = dump_json([check.__name__, plan.config.model_dump(mode="json", include=reads)])
            if part not in done:
                done.add(part)
                _named(check, plan)


_DATA: Any = {"data", "segment", "augment", "evaluate"}
_MODEL: Any = {"model": True, "permute": {"order_tag"}, "train": True, "augment": True}
"""What each check depends on: many cells need one look."""


def _named(check: Check, plan: Plan) -> None:
    try:
        check(plan)
    except SptError as error:
        error.add_note(f"cell: {plan.cell.label}")
        raise


def _check_data(plan: Plan) -> None:
    from spt.preprocess import preprocess
    from spt.score import check_evaluation

    check_evaluation(plan.config)
    if plan.shared is None:
        preprocess(plan.config)  # only looks whether the segmented data that is given was cut in the cell's way


def _check_model(plan: Plan) -> None:
    from spt.model import check_lora, load_tokenizer
    from spt.train.log import trackers_of

    config = plan.config
    trackers_of(config)
    if config.model.lora is not None:
        check_lora(config.model.lora)
    if config.model.from_scratch is None:
        load_tokenizer(config.model)
    else:
        _check_objective(config)


def _check_objective(config: Config) -> None:
    """Build a model from scratch as training would, with a vocabulary of bytes, and prepare its objective."""
    from spt.loss import OBJECTIVES
    from spt.model import check_positions, prepare_model, train_tokenizer
    from spt.model.attention import fit_attention

    assert config.model.from_scratch is not None
    tokenizer = train_tokenizer(["a b"], config.model.from_scratch.vocab_size, config.signs)
    prepared = prepare_model(config.model, tokenizer, config.permute.order_tag, config.seed)
    fit_attention(prepared.model, packing=config.train.packing)
    OBJECTIVES[config.train.objective].prepare(prepared)
    check_positions(prepared.model, config.train.max_length, "train.max_length")
