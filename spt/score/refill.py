"""Prompts → continuations in a batch that stays full: where rows have ended, waiting prompts are read in their places.

In: prompts, the rules of decoding, what fits. Out: each continuation, as soon as it has ended. Trade-off: prompts join
several at a time, once an eighth of the places is free, since each joining reads them in a pass of their own.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from accelerate.utils.memory import clear_device_cache
from torch import Tensor

from spt.score.batches import Budget, fits
from spt.score.running import Running, start, step

Done = Callable[[int, Sequence[int]], None]


class Choosing(Protocol):
    """What chooses a token and ends a row: `spt.score.generate.Rules`."""

    config: Any

    def choose(self, ids: Tensor, logits: Tensor, places: Sequence[tuple[int, int]]) -> Tensor:
        """Return the next token of each row."""

    def ends(self, token: int, written: int) -> bool:
        """Return whether a row ends with its newest token."""


def continue_rows(model: Any, prompts: Sequence[Sequence[int]], rules: Choosing, budget: Budget, done: Done) -> None:
    """Continue every prompt until the rules end it, and hand on (its number, the tokens written) as it ends."""
    _Loop(model, prompts, rules, budget, done).run()


class _Loop:
    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], rules: Choosing, budget: Budget, done: Done
    ) -> None:
        self.model, self.prompts, self.rules, self.budget, self.done = model, prompts, rules, budget, done
        order = sorted(range(len(prompts)), key=lambda number: (-len(prompts[number]), number))
        self.waiting = deque(order)
        self.written: list[list[int]] = [[] for _ in prompts]
        self.ended: set[int] = set()
        self.running: Running | None = None

    def run(self) -> None:
        """Read and write until nothing waits or runs."""
        while self.waiting or self.running is not None:
            fresh = self._admitted()
            active = [*fresh, *(self.running.owners if self.running else ())]
            if not fits(partial(self._go_on, fresh), len(active)):
                self._start_again([owner for owner in active if owner not in self.ended])

    def _admitted(self) -> list[int]:
        """Return the prompts that join now, taken from those that wait."""
        if not self.waiting:
            return []
        # What waits is never longer than what ran before it.
        width = self._width([*(self.running.owners if self.running else ()), self.waiting[0]])
        room, running = self.budget.fitting(width), len(self.running.owners) if self.running else 0
        free = min(room - running, len(self.waiting))
        if running and free < max(1, min(room // 8, len(self.waiting))):
            return []
        return [self.waiting.popleft() for _ in range(free)]

    def _width(self, owners: Sequence[int]) -> int:
        return max(len(self.prompts[owner]) for owner in owners) + int(self.rules.config.max_new_tokens)

    def _go_on(self, fresh: list[int]) -> None:
        if fresh:
            pad_id = self.rules.config.pad_token_id
            rows = start(self.model, fresh, [self.prompts[owner] for owner in fresh], pad_id)
            joining = self._write(rows)
            if self.running is None:
                self.running = joining
            elif joining is not None:
                self.running.join(joining)
        elif self.running is not None:
            step(self.model, self.running)
            self.running = self._write(self.running)

    def _write(self, running: Running) -> Running | None:
        """Return the rows that go on, each with one token more."""
        places = [(owner, len(self.written[owner])) for owner in running.owners]
        tokens = self.rules.choose(running.ids, running.logits, places)
        running.append(tokens)
        kept = []
        for row, (owner, token) in enumerate(zip(running.owners, tokens.tolist(), strict=True)):
            self.written[owner].append(token)
            if self.rules.ends(token, len(self.written[owner])):
                self.ended.add(owner)
                self.done(owner, self.written[owner])
            else:
                kept.append(row)
        if kept and len(kept) < len(running.owners):
            running.keep(kept)
        return running if kept else None

    def _start_again(self, active: Sequence[int]) -> None:
        """Let rows that ran out of memory wait again, from their prompts on, for a smaller batch."""
        self.running = None
        clear_device_cache(garbage_collection=True)
        self.budget.shrink(len(active), self._width(active))
        for owner in active:
            self.written[owner] = []
        self.waiting = deque(sorted({*active, *self.waiting}, key=lambda number: (-len(self.prompts[number]), number)))
