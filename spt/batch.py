"""Examples → padded or packed tensors, and the plan of which record is learned at which step.

The plan is a pure function of seed and epoch: ranks and resumed runs compute it instead of remembering it. A global
batch is sorted by length and then cut into micro-batches, so that little is padded. Trade-off: lengths are characters
of the text, known without encoding, so the sorting is only nearly exact.

    padded    The Sea . <eos>            packed    The Sea . <eos> Ann Lee <eos>
              Ann Lee <eos> ·            position    0   1 2     3   0   1     2

Neither has an attention mask: what pads a row on the right is never seen by a causal model, and packed examples are
kept apart by their lengths (`spt.model.attention`, or the kernels of flash attention). Only masked tokens, which are
predicted from both sides, ask for one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spt.encode import IGNORED
from spt.records import Example


@dataclass(frozen=True)
class Batch:
    """One micro-batch: a row an example, padded on the right; or, `packed`, one row of all examples.

    `lengths` are tokens, one an example (none: a row of weight zero). The first label of every example is masked.
    Where tokens are learned from both sides, `visible` is what every token of a row attends to (None: what is before).
    """

    input_ids: Int[Tensor, "rows width"]
    labels: Int[Tensor, "rows width"]
    lengths: tuple[int, ...]
    packed: bool = False
    visible: Bool[Tensor, "rows width"] | None = None

    @property
    def target_tokens(self) -> int:
        """Return how many tokens are predicted and counted in the loss."""
        return int((self.labels != IGNORED).sum())

    @property
    def tokens(self) -> int:
        """Return how many tokens are not padding."""
        return sum(self.lengths)

    @property
    def size(self) -> int:
        """Return how many positions are computed, padding included."""
        return self.input_ids.numel()

    def inputs(self, device: Any) -> dict[str, Any]:
        """Return the keyword arguments of an objective's forward, on a device.

        `predictors` are the positions, in the flattened batch, whose next token is learned: found here, so that a
        device need not be waited for. A packed row has the lengths under the names that flash attention's kernels use.
        """
        predictors = (self.labels.flatten()[1:] != IGNORED).nonzero()[:, 0]
        tensors = {"input_ids": self.input_ids, "labels": self.labels, "predictors": predictors}
        if self.visible is not None:
            tensors["visible"] = self.visible
        if not self.packed:
            return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
        lengths = self.lengths or (self.size,)
        tensors["position_ids"] = torch.cat([torch.arange(length) for length in lengths])[None]
        bounds = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
        tensors |= {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds}
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
        return {**moved, "max_length_q": max(lengths), "max_length_k": max(lengths)}


def steps_per_epoch(records: int, batch_size: int) -> int:
    """Return the number of global steps in an epoch; the last one may be smaller than the others."""
    return ceil(records / batch_size)


def shuffled(count: int, seed: int, *place: int) -> Any:
    """Return the numbers below `count` as an array, in an order that is a function of seed and place alone."""
    # RandomState: numpy promises that its stream never changes.
    return np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32, *place]).permutation(count)


def plan_epoch(records: int, batch_size: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Return the record indices of each global step of an epoch: every record once, none twice."""
    order = shuffled(records, seed, epoch)
    return [order[start : start + batch_size].tolist() for start in range(0, records, batch_size)]


def split_step(lengths: Sequence[int], micro_batch_size: int, *, rank: int, world_size: int) -> list[list[int]]:
    """Return the micro-batches of one rank: positions within the global batch, longest first.

    Every rank gets the same number of micro-batches, of nearly equal size; one may be empty where examples are few.
    """
    order = sorted(range(len(lengths)), key=lambda position: (-lengths[position], position))
    rounds = ceil(len(order) / (micro_batch_size * world_size))
    chunks = np.array_split(np.array(order, dtype=np.int64), rounds * world_size)
    return [chunk.tolist() for chunk in chunks[rank::world_size]]


def collate(examples: Sequence[Example], pad_id: int, *, packing: bool = False) -> Batch:
    """Return examples as one batch; without examples, one row of padding with weight zero.

    Padding is masked by length, never by its id: where the pad token is the end token, the end is still learned.
    """
    lengths = tuple(len(example.input_ids) for example in examples)
    if packing and examples:
        ids = [token for example in examples for token in example.input_ids]
        labels = [label for example in examples for label in (IGNORED, *example.labels[1:])]
        return Batch(torch.tensor([ids]), torch.tensor([labels]), lengths, packed=True)
    shape = (max(len(examples), 1), max(lengths, default=2))
    padded_ids = np.full(shape, pad_id, dtype=np.int64)
    padded_labels = np.full(shape, IGNORED, dtype=np.int64)
    for row, (example, length) in enumerate(zip(examples, lengths, strict=True)):
        padded_ids[row, :length] = example.input_ids
        padded_labels[row, 1:length] = example.labels[1:]
    return Batch(torch.from_numpy(padded_ids), torch.from_numpy(padded_labels), lengths, packed=packing)
