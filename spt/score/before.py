"""The model before it was trained, for as long as it is needed.

In: the experiment and the trained model. Out: the adapter's own base (its adapter off), or a fresh base. Trade-off: a
fresh base lies beside the trained model in memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate.utils import patch_environment

from spt.config import Config
from spt.model import load_base, load_tokenizer
from spt.progress import say


def has_before(config: Config, model: Any) -> bool:
    """Return whether a model was something before it was trained."""
    return hasattr(model, "disable_adapter") or config.model.base is not None


@contextmanager
def model_before(config: Config, model: Any, tokenizer: Any) -> Iterator[Any]:
    """Yield the base of a trained model; None for one from scratch, or where the base has another vocabulary."""
    if hasattr(model, "disable_adapter"):
        with model.disable_adapter():
            yield model
        return
    if not has_before(config, model):
        yield None
        return
    # Any model can be asked (--model), and its tokens would mean something else to another's base.
    if not load_tokenizer(config.model).get_vocab().items() <= tokenizer.get_vocab().items():
        say(f"{config.model.base}: has another vocabulary than the model that is asked; nothing is measured before")
        yield None
        return
    with patch_environment(FSDP_CPU_RAM_EFFICIENT_LOADING="false"):  # it would read the weights on one rank only
        base = load_base(config.model)
    yield base.to(model.device)
