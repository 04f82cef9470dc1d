"""Keys and values of rows that are being continued, in room laid out beforehand.

    columns   free · first ─────────── end · free        a step writes one column, and copies nothing
    rows      those that run · free                      the last takes the place of one that leaves

In: keys and values as a layer makes them. Out: a view of all that is read of the rows that run. Trade-off: some columns
are laid out that may never be written, and rows change their order when one leaves.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

_AHEAD = 64
"""Columns that are laid out ahead of what is read."""


class Room(DynamicLayer):  # type: ignore[misc]  # transformers is untyped here
    """One layer's keys and values; `keys` and `values` are views of what is read: [rows, heads, first:end, size]."""

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Lay out room for states like these."""
        self.device, self.is_initialized = key_states.device, True
        self._first = self._end = 0
        self._parts: tuple[Tensor, ...] = tuple(
            part.new_zeros((len(part), part.shape[1], part.shape[2] + _AHEAD, part.shape[3]))
            for part in (key_states, value_states)
        )
        self._view(len(key_states))

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return all keys and values after writing down new ones."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        rows, end = len(self.keys), self._end + key_states.shape[2]
        if end > self._parts[0].shape[2]:
            self._lay_out(rows, end - self._first)
            end = self._end + key_states.shape[2]
        for part, states in zip(self._parts, (key_states, value_states), strict=True):
            part[:rows, :, self._end : end] = states
        self._end = end
        self._view(rows)
        return self.keys, self.values

    def leave(self, rows: int, holes: Tensor, fillers: Tensor, padding: int) -> None:
        """Keep so many rows, the fillers in the holes, without so many columns of padding."""
        if len(holes):
            for part in self._parts:
                part[holes, :, self._first : self._end] = part[fillers, :, self._first : self._end]
        self._first += padding
        self._view(rows)

    def join(self, other: "Room") -> None:
        """Put another's rows behind these, all ending in the same column."""
        rows, more = len(self.keys), len(other.keys)
        width, wider = self.keys.shape[2], max(self.keys.shape[2], other.keys.shape[2])
        if rows + more > len(self._parts[0]) or self._end < wider:
            self._lay_out(rows + more, wider, lead=wider - width)
        self._first = self._end - wider
        for part, states in zip(self._parts, (other.keys, other.values), strict=True):
            part[rows : rows + more, :, self._end - states.shape[2] : self._end] = states
        self._view(rows + more)

    def _lay_out(self, rows: int, width: int, lead: int = 0) -> None:
        """Move what is read to new room, behind `lead` free columns."""
        old = self.keys, self.values
        self._parts = tuple(
            part.new_zeros((rows, part.shape[1], width + _AHEAD, part.shape[3])) for part in self._parts
        )
        self._first, self._end = lead, lead + old[0].shape[2]
        for part, states in zip(self._parts, old, strict=True):
            part[: len(states), :, self._first : self._end] = states

    def _view(self, rows: int) -> None:
        self.keys, self.values = (part[:rows, :, self._first : self._end] for part in self._parts)


def laid_out() -> DynamicCache:
    """Return a cache whose layers keep their keys and values in room."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = Room
    return cache


def fill_holes(kept: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return (order, holes, fillers): rows as they stand once the last of those kept have filled the places left."""
    count, members = len(kept), set(kept)
    holes = [place for place in range(count) if place not in members]
    fillers = sorted(row for row in kept if row >= count)
    order = list(range(count))
    for hole, filler in zip(holes, fillers, strict=True):
        order[hole] = filler
    return order, holes, fillers
