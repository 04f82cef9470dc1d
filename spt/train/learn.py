"""One global step → one update of the weights, over micro-batches and ranks.

In: this rank's micro-batches. Out: what the step held over all ranks, or None where a rank was asked to stop before it.
The loss is the sum of nats, divided once by the target tokens of the whole step. Trade-off: each step waits for its
loss and its gradient norm, so that what is not a number stops training before it spoils the weights.
"""

import math
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from spt.errors import NonFiniteError
from spt.train.sharding import backward, micro_batch, update
from spt.train.stop import Stop
from spt.train.stream import Step


class Learned(NamedTuple):
    """What one step held: nats, tokens in the loss, tokens, positions computed; the gradient norm before clipping."""

    nats: float
    target_tokens: int
    tokens: int
    size: int
    norm: float


def learn(
    accelerator: Accelerator, objective: Any, optimizer: Any, step: Step, *, number: int, max_norm: float, stop: Stop
) -> Learned | None:
    """Return what a step held after the optimizer has taken it; `number` is what messages call it.

    Raises NonFiniteError, before anything is updated, for a loss or a gradient that is not a number.
    """
    objective.train()
    world, device, batches = accelerator.num_processes, accelerator.device, step.batches
    own = [(batch.target_tokens, batch.tokens, batch.size, 0) for batch in batches] + [(0, 0, 0, int(stop.vote()))]
    counted = accelerator.reduce(torch.tensor(own, device=device).sum(dim=0))
    targets, tokens, size, votes = (int(total) for total in counted.tolist())
    if votes:
        return None
    nats = torch.zeros((), device=device)
    for count, batch in enumerate(batches, 1):
        with micro_batch(accelerator, objective, last=count == len(batches)):
            loss = objective(**batch.inputs(device))
            # Gradients are averaged over ranks: times world undoes it, so that the sum is divided once.
            backward(accelerator, objective, loss * (world / max(targets, 1)))
        nats += loss.detach()
    total = float(accelerator.reduce(nats).item())
    _check_finite("loss", total, step.ids, number)

    def check(norm: float) -> None:
        _check_finite("gradient norm", norm, step.ids, number)

    norm = update(accelerator, objective, optimizer, max_norm, check)
    return Learned(total, targets, tokens, size, norm)


def _check_finite(what: str, value: float, ids: list[str], number: int) -> None:
    if not math.isfinite(value):
        shown = ", ".join(ids[:8]) + (" ..." if len(ids) > 8 else "")
        raise NonFiniteError(
            f"step {number}: the {what} is {value}; nothing of this step was saved. Records: {shown}. "
            "Look for broken records, or start anew with --force and a lower train.learning_rate."
        )
