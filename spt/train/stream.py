"""The examples of training: which are learned at which step, in which order, as which tensors.

    plan of the epoch ──▶ rows ──▶ Ordering ──▶ Example ──▶ Batch        one Step a global batch

In: segmented data, the mix, an encoder. Out: a Step for each number, a pure function of seed and number alone: ranks,
workers and resumed runs compute it instead of remembering it. Trade-off: every rank reads the rows of a whole global
batch, to sort them, and encodes its own part alone.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from spt.batch import Batch, plan_epoch, split_step, steps_per_epoch
from spt.config import Augment, Permute, Segment
from spt.config import Train as TrainSettings
from spt.encode import Encoder
from spt.loss import OBJECTIVES, Draw
from spt.permute import draw_ordering
from spt.records import Ordering, Segmentation
from spt.train.ahead import prepared_ahead, prepared_together
from spt.train.mix import MIX, Mixture, draw_pieces

_TOGETHER = 256
"""Examples prepared in a row without workers: with 16 a step, half the time of preparing each step alone."""


class Step(NamedTuple):
    """One global step: the ids of its whole batch, this rank's micro-batches, and what encoding these counted."""

    ids: list[str]
    batches: list[Batch]
    counts: Counter[str]


@dataclass(frozen=True)
class Stream:
    """The steps of a training.

    `rank` and `world_size` choose a part of each global batch; they never change what it holds.
    """

    data: Any
    encoder: Encoder
    segment: Segment
    permute: Permute
    train: TrainSettings
    seed: int
    pad_id: int
    rank: int = 0
    world_size: int = 1
    mix: Mixture | None = None
    mask_id: int | None = None
    augment: tuple[Augment, ...] = ()

    @property
    def examples_per_epoch(self) -> int:
        """Return the number of examples in one epoch: every record once, and the mix's share."""
        return len(self.data) + self._mixed

    @property
    def steps_per_epoch(self) -> int:
        """Return the number of global steps in one epoch."""
        return steps_per_epoch(self.examples_per_epoch, self.train.batch_size)

    @property
    def total_steps(self) -> int:
        """Return the number of global steps of the whole training."""
        assert self.train.epochs is not None, "spt.train.budget makes steps of train.max_tokens"
        steps = self.steps_per_epoch * self.train.epochs
        return min(steps, self.train.max_steps or steps)

    def steps(self, done: int) -> Generator[Step, None, None]:
        """Yield every step after the first `done`; close the iterator to stop what prepares them ahead.

        Raises WorkError where a worker of `train.dataloader_num_workers` was killed.
        """
        numbers, workers = range(done, self.total_steps), self.train.dataloader_num_workers
        if workers is None:
            workers = int(torch.accelerator.is_available())
        if workers and numbers:
            yield from prepared_ahead(self.step, numbers, workers)
        else:
            yield from prepared_together(self.step, numbers, max(_TOGETHER // self.train.batch_size, 1))

    def step(self, number: int) -> Step:
        """Return one step, counted from 0."""
        epoch, place = divmod(number, self.steps_per_epoch)
        pieces = 0 if self.mix is None else len(self.mix.rows)
        plan = _plan(len(self.data), self._mixed, pieces, self.train.batch_size, self.seed, epoch)
        facts, general = plan[place]
        rows = self.data[facts]
        if self.mix is not None:
            rows = {name: [*rows[name], *added] for name, added in self.mix.columns(general).items()}
        lengths = [len(text) for text in rows["text"]]
        parts = split_step(lengths, self.train.micro_batch_size, rank=self.rank, world_size=self.world_size)
        self.encoder.counts = Counter()
        batches = [self._batch(rows, part, Draw(self.seed, epoch, number, self.mask_id)) for part in parts]
        drawn = sum(position >= len(facts) for part in parts for position in part)
        return Step(rows["id"], batches, self.encoder.counts + Counter(mix_examples=drawn))

    @property
    def _mixed(self) -> int:
        return 0 if self.mix is None else self.mix.per_epoch(len(self.data))

    def _batch(self, rows: dict[str, list[Any]], part: Sequence[int], draw: Draw) -> Batch:
        orderings = [self._ordering(rows, position, draw.epoch) for position in part]
        objective = OBJECTIVES[self.train.objective]
        return objective.collate(self.encoder.encode(orderings), self.pad_id, draw, packing=self.train.packing)

    def _ordering(self, rows: dict[str, list[Any]], position: int, epoch: int) -> Ordering:
        segmentation = segmentation_at(rows, position)
        augment = () if segmentation.segmenter == MIX else self.augment
        return draw_ordering(segmentation, self.permute, self.segment, seed=self.seed, epoch=epoch, augment=augment)


@lru_cache(maxsize=2)  # of the epoch at hand, and of the next one where workers are ahead
def _plan(
    facts: int, mixed: int, pieces: int, batch_size: int, seed: int, epoch: int
) -> list[tuple[list[int], list[int]]]:
    """Return (records, pieces of the mix) of each step of an epoch, shuffled together."""
    taken = draw_pieces(pieces, mixed, seed=seed, epoch=epoch) if mixed else []
    plan = plan_epoch(facts + mixed, batch_size, seed=seed, epoch=epoch)
    return [([i for i in step if i < facts], [taken[i - facts] for i in step if i >= facts]) for step in plan]


def segmentation_at(rows: dict[str, list[Any]], position: int) -> Segmentation:
    """Return one row of a batch of columns as a Segmentation."""
    return Segmentation(
        id=rows["id"][position],
        text=rows["text"][position],
        cuts=tuple(rows["cuts"][position]),
        sentences=tuple(rows["sentences"][position]),
        segmenter=rows["segmenter"][position],
        completion_start=rows["completion_start"][position],
    )
