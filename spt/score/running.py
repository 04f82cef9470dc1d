"""Rows that are being continued, each at its own place: they leave one by one, and others take their places.

    ids    · · Ann Lee directed The      mask   0 0 1 1 1 1
           The botanist of Oslo is Ann          1 1 1 1 1 1

In: prompts as token ids. Out: rows padded on the left, and what a model has read of them (keys and values of all but
each row's last token, in `spt.score.room`). Trade-off: rows that join are padded to the longest, and those that leave
change the order of the others, so that neither copies what is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad

from spt.model.head import base_of
from spt.score.room import Room, fill_holes, laid_out


@dataclass
class Running:
    """Rows in one tensor, with what was read of them. `owners` are the numbers of their prompts."""

    owners: list[int]
    ids: Int[Tensor, "rows width"]
    mask: Int[Tensor, "rows width"]
    cache: Any
    logits: Tensor

    def append(self, tokens: Int[Tensor, " rows"]) -> None:
        """Put a token after each row."""
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=1)
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], dim=1)

    def keep(self, rows: Sequence[int]) -> None:
        """Let all other rows leave, and the padding that no row needs any more. Rows change their order."""
        order, *moved = fill_holes(rows)
        kept, holes, fillers = (torch.tensor(places, device=self.ids.device) for places in (order, *moved))
        padding = int(self.mask.shape[1] - self.mask[kept].sum(dim=1).max())
        self.owners = [self.owners[row] for row in order]
        self.ids, self.mask = (part[kept, padding:] for part in (self.ids, self.mask))
        for layer in self._layers():
            layer.leave(len(order), holes, fillers, padding)

    def join(self, other: "Running") -> None:
        """Take in the rows of another."""
        missing = other.ids.shape[1] - self.ids.shape[1]
        left, right = max(missing, 0), max(-missing, 0)
        for name in ("ids", "mask"):
            parts = pad(getattr(self, name), (left, 0)), pad(getattr(other, name), (right, 0))
            setattr(self, name, torch.cat(parts))
        self.owners += other.owners
        for layer, others in zip(self._layers(), other._layers(), strict=True):
            layer.join(others)

    def _layers(self) -> list[Room]:
        """Return the layers that have keys and values of their own."""
        return [layer for layer in self.cache.layers if layer.keys is not None]


def start(model: Any, owners: Sequence[int], prompts: Sequence[Sequence[int]], pad_id: int) -> Running:
    """Return prompts as rows, all of them read, with the logits of what comes next."""
    ids, mask = (part.to(model.device) for part in pad_left(prompts, pad_id))
    running = Running(list(owners), ids, mask, laid_out(), ids)
    _read(model, running, ids.shape[1])
    return running


def step(model: Any, running: Running) -> None:
    """Let the model read the last token of each row."""
    _read(model, running, 1)


def _read(model: Any, running: Running, width: int) -> None:
    places = (running.mask.cumsum(dim=1) - 1).clamp(min=0)[:, -width:]
    known = _parameters(type(base_of(model)).forward)
    own = {"position_ids": places, "logits_to_keep": 1}
    output = model(
        input_ids=running.ids[:, -width:],
        attention_mask=running.mask,
        use_cache=True,
        **{"cache" if "cache" in known else "past_key_values": running.cache},
        **{name: value for name, value in own.items() if name in known},
    )
    running.logits = output.logits[:, -1]


@cache
def _parameters(forward: Callable[..., Any]) -> frozenset[str]:
    """Return what a kind of model takes: transformers renamed the cache, and a few have no positions."""
    return frozenset(signature(forward).parameters)


def pad_left(
    rows: Sequence[Sequence[int]], pad_id: int
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """Return (ids, attention mask), padded on the left."""
    width = max(len(row) for row in rows)
    ids = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)


_TRIED = ([4, 5, 6, 7], [3, 8, 9, 4, 4], [1, 2, 3, 5])
"""What `_tried` leaves, by owner. A row's first token weighs much in half precision, so none is read alone."""


@torch.inference_mode()
def can_run(model: Any) -> bool:
    """Return whether rows that join and leave are continued as each would be alone, tried on a few tokens.

    An architecture that keeps something else than keys and values of every token cannot.
    """
    if getattr(base_of(model), "_is_stateful", False):
        return False
    try:
        found = _tried(model)
    except (TypeError, ValueError, RuntimeError, KeyError, IndexError, AttributeError):
        return False
    tolerance = 1e-3 if next(model.parameters()).dtype == torch.float32 else 3e-2
    wanted = [
        model(input_ids=torch.tensor([row], device=model.device), use_cache=False).logits[0, -1] for row in _TRIED
    ]
    return all(
        float((one - other).abs().max()) <= tolerance * float(other.abs().max())
        for one, other in zip(found, wanted, strict=True)
    )


def _tried(model: Any) -> Tensor:
    running = start(model, [3, 0, 1], [[7, 5], [4, 5], [3, 8, 9]], 0)
    running.append(torch.tensor([8, 6, 4], device=model.device))
    step(model, running)
    late = start(model, [2], [[1, 2, 3]], 0)
    late.append(torch.tensor([5], device=model.device))
    running.append(torch.tensor([6, 7, 4], device=model.device))
    running.join(late)
    running.keep([1, 2, 3])
    step(model, running)
    return running.logits[[running.owners.index(owner) for owner in range(len(_TRIED))]]
