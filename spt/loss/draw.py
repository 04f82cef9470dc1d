"""What an objective draws from, and how it masks: examples → examples with some tokens hidden, and labels there alone.

    input_ids  <bos> The _Sea  [mask] _directed _Ann [mask] <eos>
    labels     -100  -100 -100 .      -100      -100 _Lee   -100

In: examples, and where in training they stand. Out: the same whatever the ranks, the micro-batches, or where a run was
resumed. Only what would be learned is ever masked: no tag, no prompt under `loss_on: completion`, no first token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch

from spt.batch import Batch, collate
from spt.encode import IGNORED
from spt.permute import generator_for
from spt.records import Example

Choose = Callable[[Random, Sequence[int]], Sequence[int]]
"""Of the places that are learned, those that are masked."""


@dataclass(frozen=True)
class Draw:
    """Where in training something is drawn, and the id that stands for a masked token."""

    seed: int
    epoch: int
    step: int
    mask_id: int | None = None

    def toss(self) -> bool:
        """Return heads or tails for a whole global step, the same on every rank."""
        return generator_for(self.seed, self.step, "coin of an objective").random() < 0.5

    def generator(self, record_id: str) -> Random:
        """Return what draws the masks of a record: not what draws its order."""
        return generator_for(self.seed, self.epoch, f"mask of {record_id}")


def masked_batch(examples: Sequence[Example], pad_id: int, draw: Draw, choose: Choose) -> Batch:
    """Return examples with the chosen tokens masked, and learned; what is masked or pads a row is not attended to."""
    batch = collate([_masked(example, draw, choose) for example in examples], pad_id)
    if not examples:
        return replace(batch, visible=torch.ones_like(batch.input_ids, dtype=torch.bool))
    real = torch.arange(batch.input_ids.shape[1]) < torch.tensor(batch.lengths)[:, None]
    return replace(batch, visible=real & (batch.labels == IGNORED))


def _masked(example: Example, draw: Draw, choose: Choose) -> Example:
    assert draw.mask_id is not None
    learned = [place for place in range(1, len(example.labels)) if example.labels[place] != IGNORED]
    ids, labels = list(example.input_ids), [IGNORED] * len(example.labels)
    for place in choose(draw.generator(example.id), learned):
        ids[place], labels[place] = draw.mask_id, example.labels[place]
    return replace(example, input_ids=tuple(ids), labels=tuple(labels))
