"""How fast training goes: the columns of the log that the clock decides.

In: each step, and what it held over all ranks. Out: rates since the last log line, so that a slow stretch shows and a
fast start does not hide it. A step lasts from asking for its data until it is counted: evaluations and checkpoints are
left out. Trade-off: the wait for data is this rank's own; the others meet it in the step's first reduction.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

UNITS = {
    "tokens_per_second": "tokens that are not padding, over all ranks",
    "target_tokens_per_second": "tokens counted in the loss, over all ranks",
    "non_padding": "share of the positions computed that are not padding",
    "data_wait": "share of the time that the main rank waited for its next micro-batches",
    "mfu": "model FLOP utilisation: FLOP of the tokens that are not padding / what the devices can do; null if unknown",
}
"""The columns under `throughput` in a line of `metrics.jsonl`, since the line before."""


@dataclass
class Throughput:
    """The steps since the last log line.

    `flops_per_token` is that of forward and backward; `peak_flops` a second, of all devices together (None: unknown).
    """

    flops_per_token: float
    peak_flops: float | None
    targets: int = 0
    tokens: int = 0
    size: int = 0
    waited: float = 0.0
    seconds: float = 0.0
    _asked: float = field(default_factory=time.perf_counter)

    def timed(self, steps: Iterable[T]) -> Iterator[T]:
        """Yield the steps, timing how long each is waited for."""
        iterator, end = iter(steps), object()
        while True:
            self._asked = time.perf_counter()
            step = next(iterator, end)
            self.waited += time.perf_counter() - self._asked
            if step is end:
                return
            yield step  # type: ignore[misc]  # all but `end` are steps

    def count(self, *, targets: int, tokens: int, size: int) -> None:
        """Count a step as done: its tokens in the loss, its tokens, and the positions computed, over all ranks."""
        self.targets += targets
        self.tokens += tokens
        self.size += size
        self.seconds += time.perf_counter() - self._asked

    @property
    def rate(self) -> float:
        """Return the tokens a second since the last log line."""
        return self.tokens / max(self.seconds, 1e-9)

    def take(self) -> dict[str, float | None]:
        """Return the columns of `UNITS` since the last call, and start anew."""
        seconds, used = max(self.seconds, 1e-9), self.flops_per_token * self.rate
        columns = {
            "tokens_per_second": round(self.rate, 1),
            "target_tokens_per_second": round(self.targets / seconds, 1),
            "non_padding": round(self.tokens / max(self.size, 1), 4),
            "data_wait": round(self.waited / seconds, 4),
            "mfu": None if self.peak_flops is None else round(used / self.peak_flops, 4),
        }
        self.targets = self.tokens = self.size = 0
        self.waited = self.seconds = 0.0
        return columns
