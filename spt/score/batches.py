"""Lengths → batches that fit: at most so many rows, at most so many tokens with padding, and halved where memory ends.

In: the length of each row. Out: positions in batches of similar length, longest first, so that memory runs out at once
or not at all. Trade-off: what ran out of memory is computed again from its start, in halves.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from spt.progress import say


@dataclass
class Budget:
    """What a batch may hold: `rows`, and `tokens` with padding. A row that is longer than that is a batch of its own.

    `shrink` lowers it for good, and says so the first time.
    """

    rows: int
    tokens: int
    shrunk: bool = False

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield the positions of each batch, of similar length, the longest first; asked anew before each batch."""
        order = sorted(range(len(lengths)), key=lambda position: (-lengths[position], position))
        start = 0
        while start < len(order):
            taken = order[start : start + self.fitting(lengths[order[start]])]
            yield taken
            start += len(taken)

    def fitting(self, width: int) -> int:
        """Return how many rows of a width fit; one at least."""
        return max(1, min(self.rows, self.tokens // max(width, 1)))

    def shrink(self, rows: int, width: int) -> None:
        """Allow half of what has just run out of memory."""
        if not self.shrunk:
            say(f"out of memory with {rows} rows of {width} tokens: going on with half, and less where that is needed")
        self.shrunk = True
        self.rows = max(1, rows // 2)
        self.tokens = max(1, rows * width // 2)


def in_halves(work: Callable[[list[int]], None], positions: list[int], width: int, budget: Budget) -> None:
    """Do the work on a batch, in halves where memory runs out; a row that does not fit alone raises torch's error."""
    if not fits(lambda: work(positions), len(positions)):
        clear_device_cache(garbage_collection=True)
        budget.shrink(len(positions), width)
        middle = len(positions) // 2
        in_halves(work, positions[:middle], width, budget)
        in_halves(work, positions[middle:], width, budget)


def fits(work: Callable[[], None], rows: int) -> bool:
    """Return whether the work was done; False where memory ran out and there is more than one row to split."""
    try:
        work()
    except RuntimeError as error:
        # CPU allocators of torch word it in more ways than accelerate knows.
        if rows < 2 or not (should_reduce_batch_size(error) or "not enough memory" in str(error)):
            raise
        return False  # the error is gone before memory is freed: it holds the tensors of its frames
    return True
