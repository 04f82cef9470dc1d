"""Examples → padded tensors, and the plan of which record is learned at which step.

The plan is a pure function of seed and epoch: ranks and resumed runs compute it instead of remembering it. A global
batch is sorted by length and then cut into micro-batches, so that little is padded. Trade-off: lengths are characters
of the text, known without encoding, so the sorting is only nearly exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from spt.encode import IGNORED
from spt.records import Example


@dataclass(frozen=True)
class Batch:
    """One micro-batch, padded on the right."""

    input_ids: Int[Tensor, "batch tokens"]
    attention_mask: Int[Tensor, "batch tokens"]
    labels: Int[Tensor, "batch tokens"]

    @property
    def target_tokens(self) -> int:
        """Return how many tokens are predicted and counted in the loss."""
        return int((self.labels[:, 1:] != IGNORED).sum())


def steps_per_epoch(records: int, batch_size: int) -> int:
    """Return the number of global steps in an epoch; the last one may be smaller than the others."""
    return ceil(records / batch_size)


def plan_epoch(records: int, batch_size: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Return the record indices of each global step of an epoch: every record once, none twice."""
    # RandomState: numpy promises that its stream never changes.
    order = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32, epoch]).permutation(records)
    return [order[start : start + batch_size].tolist() for start in range(0, records, batch_size)]


def split_step(lengths: Sequence[int], micro_batch_size: int, *, rank: int, world_size: int) -> list[list[int]]:
    """Return the micro-batches of one rank: positions within the global batch, longest first.

    Every rank gets the same number of micro-batches, of nearly equal size; one may be empty where examples are few.
    """
    order = sorted(range(len(lengths)), key=lambda position: (-lengths[position], position))
    rounds = ceil(len(order) / (micro_batch_size * world_size))
    chunks = np.array_split(np.array(order, dtype=np.int64), rounds * world_size)
    return [chunk.tolist() for chunk in chunks[rank::world_size]]


def collate(examples: Sequence[Example], pad_id: int) -> Batch:
    """Return examples as one batch; without examples, one row of padding with weight zero.

    Padding is masked by length, never by its id: where the pad token is the end token, the end is still learned.
    """
    width = max((len(example.input_ids) for example in examples), default=2)
    shape = (max(len(examples), 1), width)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    labels = np.full(shape, IGNORED, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    for row, example in enumerate(examples):
        length = len(example.input_ids)
        input_ids[row, :length], labels[row, :length], mask[row, :length] = example.input_ids, example.labels, 1
    if not examples:
        mask[:] = 1  # a row that attends to nothing gives NaN
    return Batch(torch.from_numpy(input_ids), torch.from_numpy(mask), torch.from_numpy(labels))


def length_sorted(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yield positions in batches of similar length, longest first, so that memory runs out at once or not at all."""
    order = sorted(range(len(lengths)), key=lambda position: (-lengths[position], position))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
