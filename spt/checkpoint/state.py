"""What a checkpoint holds: where training stands, what is trained, and the random generators.

In: the running loop's objects. Out: plain values and named tensors. Trade-off: what is frozen is left out, so a
checkpoint needs the base it was trained from.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from spt.checkpoint.ranks import first_of_ranks
from spt.errors import NonFiniteError


@dataclass
class State:
    """Where training stands: steps done, what was summed up since the last log line, what encoding counted.

    `total_tokens` were counted in the loss so far, `tokens` were read: all that are not padding.
    `best` is the best value of the watched metric so far, at `best_step`; `stale_evaluations` brought no gain since.
    `seconds` is what the steps took by the clock, those of a killed run after its last checkpoint left out.
    """

    step: int = 0
    nats: float = 0.0
    target_tokens: int = 0
    total_tokens: int = 0
    tokens: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    best: float | None = None
    best_step: int | None = None
    stale_evaluations: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Trained:
    """The objects whose state a checkpoint holds; `model` is unwrapped.

    `engine` is the wrapper that DeepSpeed trains through: it alone can save and load what it shards.
    """

    model: Any
    optimizer: Any
    scheduler: Any
    engine: Any = None


def trained_tensors(model: Any) -> dict[str, torch.Tensor]:
    """Return what is trained, by name; a name does not tell whether the model was compiled."""
    named = ((name, p) for name, p in model.named_parameters() if p.requires_grad)
    return {name.replace("_orig_mod.", ""): parameter.data for name, parameter in named}


def check_finite(model: Any, step: int) -> None:
    """Raise NonFiniteError, on every rank, where a trained parameter is not a number: such a model is never saved."""
    broken = (name for name, tensor in trained_tensors(model).items() if not torch.isfinite(_own_part(tensor)).all())
    name = first_of_ranks(next(broken, None))
    if name is not None:
        raise NonFiniteError(
            f"step {step}: the update made {name} infinite or not a number, so nothing was saved. Start anew with "
            "--force and a lower train.learning_rate."
        )


def _own_part(tensor: torch.Tensor) -> torch.Tensor:
    """Return the part of a sharded tensor that this rank holds."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def generators() -> dict[str, Any]:
    """Return the state of this process's random generators (dropout draws from them)."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_generators(states: dict[str, Any]) -> None:
    """Set this process's random generators to a saved state."""
    torch.set_rng_state(states["cpu"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
