"""SIGTERM and SIGINT → a checkpoint, and an end that tells itself from a failure. Around the steps of the loop.

In: signals, to one rank or to all. Out: a vote that the step's first reduction carries, so that every rank stops before
the same step, and StoppedError once that state is saved. Trade-off: a signal waits for the step at hand (and for an
evaluation, where one is due), because half a step cannot be saved.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from spt.checkpoint import checkpoints
from spt.errors import StoppedError
from spt.progress import say

GO_ON = "The same command again goes on from there."
SIGNALS = (signal.SIGTERM, signal.SIGINT)
ECHO_SECONDS = 1.0
"""Within this time a second one is the first again: a scheduler tells every process, and a launcher passes it on."""


@dataclass
class Stop:
    """Whether this process was asked to stop."""

    asked: signal.Signals | None = None
    _since: float = 0.0
    _said: bool = False

    def vote(self) -> float:
        """Return 1 where a signal came, otherwise 0: summed over ranks, it tells all of them to stop."""
        if self.asked is not None and not self._said:
            self._said = True
            say(f"{self.asked.name}: saving, then stopping; the same signal again ends at once")
        return float(self.asked is not None)

    def error(self, folder: Path, step: int, steps: int) -> StoppedError:
        """Return the error that ends a run whose state after `step` is saved in `folder`."""
        cause = "a signal to another rank" if self.asked is None else self.asked.name
        return StoppedError(f"stopped by {cause} after step {step} of {steps}. {last_good(folder)} {GO_ON}")

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked is None:
            self.asked, self._since = signal.Signals(number), time.monotonic()
        elif time.monotonic() - self._since >= ECHO_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextmanager
def stoppable(folder: Path) -> Iterator[Stop]:
    """Yield what signals ask for while the steps are taken; a step that fails names the last good checkpoint.

    `folder` is the training folder. A second signal, a second later or more, ends the process as if it were not caught.
    """
    stop = Stop()
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other thread may set handlers, or gets signals
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # nohup, `command &`
        before = {number: signal.signal(number, stop._ask) for number in heard}
    try:
        yield stop
    except StoppedError:
        raise
    except Exception as error:
        error.add_note(last_good(folder))
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def last_good(folder: Path) -> str:
    """Return a sentence that names the newest whole checkpoint under a training folder."""
    found = checkpoints(folder / "checkpoints")
    return f"Last good checkpoint: {found[-1]}." if found else "No checkpoint was written yet."
