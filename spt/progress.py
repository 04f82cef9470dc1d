"""What a person sees while work goes on: a rich bar on a terminal, a plain line now and then elsewhere.

Everything goes to standard error, so that standard output holds results alone. Trade-off: one switch for the whole
process (`configure`), since only one person watches it.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

LINE_SECONDS = 10.0
"""Seconds between two plain lines of one bar."""

_state = {"enabled": True}


def is_main_process() -> bool:
    """Return whether this process is the one that speaks and writes: rank 0, or the only one.

    Launchers say so in the environment, before any process group exists.
    """
    return os.environ.get("RANK", "0") == "0"


def configure(*, enabled: bool) -> None:
    """Switch messages and bars on or off: off under --quiet and on every rank but the main one."""
    _state["enabled"] = enabled


def say(message: str) -> None:
    """Print one line for people."""
    if _state["enabled"]:
        Console(stderr=True, soft_wrap=True, highlight=False).print(message, markup=False)


@dataclass
class Bar:
    """A running count; `advance` is cheap enough to be called for every row."""

    description: str
    total: int | None
    unit: str
    done: int = 0
    resumed: int = 0
    note: str = ""
    started: float = field(default_factory=time.monotonic)
    _progress: Progress | None = None
    _task: TaskID | None = None
    _last_line: float = field(default_factory=time.monotonic)

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count `count` more; `note` stands at the end of the line (a loss, a rate)."""
        self.done += count
        self.note = note or self.note
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=count, rate=self.rate(), note=self.note)
        elif _state["enabled"] and time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            say(self.line())

    def rate(self) -> str:
        """Return how many a second since the start, such as `812 rows/s`, or an hour, such as `40 cells/h`."""
        per_second = (self.done - self.resumed) / max(time.monotonic() - self.started, 1e-9)
        if 0 < per_second < 0.1:
            return f"{3600 * per_second:.0f} {self.unit}/h"
        return f"{per_second:.{0 if per_second >= 100 else 1}f} {self.unit}/s"

    def line(self) -> str:
        """Return the state as one plain line."""
        parts = [f"{self.description}: {self.done}" + (f"/{self.total}" if self.total else ""), self.rate()]
        fresh = self.done - self.resumed
        if self.total and fresh:
            seconds = (time.monotonic() - self.started) / fresh * max(self.total - self.done, 0)
            parts.append(f"{timedelta(seconds=round(seconds))} left")
        return ", ".join([*parts, self.note] if self.note else parts)


@contextmanager
def track(description: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[Bar]:
    """Yield a bar over `total` items of `unit` (plural), the first `done` of which an earlier run finished."""
    bar = Bar(description, total, unit, done=done, resumed=done)
    if not (_state["enabled"] and sys.stderr.isatty()):
        yield bar
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(compact=True), TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total, completed=done, rate="", note="")
        bar._progress, bar._task = progress, task
        yield bar
