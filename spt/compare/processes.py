"""Commands, each a process of its own, some at a time.

In: jobs. Out: each with its exit code, in the order in which they end. A signal to this process is passed on to all of
them as SIGTERM, at which training saves and ends; no more are started. Trade-off: they are looked at ten times a
second, which costs less than threads that wait.
"""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Job:
    """A command; what it prints goes to the end of the file `log`."""

    label: str
    command: tuple[str, ...]
    log: Path


@dataclass(frozen=True)
class Ended:
    """A job that has ended: its exit code (negative: the signal that killed it), and what it wrote."""

    job: Job
    code: int
    seconds: float
    said: str

    @property
    def reason(self) -> str:
        """Return why it failed: its error as it said it, or its last lines."""
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name} (by hand, or for want of memory)"
        lines = [line for line in self.said.splitlines() if line.strip()]
        start = max((i for i, line in enumerate(lines) if line.startswith("error: ")), default=len(lines) - 5)
        return "\n".join(lines[max(start, 0) :]) or f"exit code {self.code}, without a word"


@dataclass
class Processes:
    """At most `at_once` jobs at a time; `asked` is the first signal that came."""

    at_once: int
    asked: signal.Signals | None = None
    _running: dict[Job, tuple[subprocess.Popen[bytes], float, int]] = field(default_factory=dict)

    def run(self, jobs: Iterable[Job], started: Callable[[list[str]], None]) -> Iterator[Ended]:
        """Yield the jobs as they end; `started` is told which ones run whenever one starts.

        Close the iterator, and what still runs is stopped.
        """
        waiting = deque(jobs)
        try:
            while self._running or (waiting and self.asked is None):
                while waiting and len(self._running) < self.at_once and self.asked is None:
                    self._start(waiting.popleft())
                    started([job.label for job in self._running])
                ended = [self._ended(job) for job, (process, *_) in self._running.items() if process.poll() is not None]
                for one in ended:
                    del self._running[one.job]
                yield from ended
                if not ended:
                    time.sleep(LOOK_SECONDS)
        finally:
            self._pass_on()
            for process, *_ in self._running.values():
                process.wait()

    @contextmanager
    def heeding_signals(self) -> Iterator[None]:
        """Pass signals on to the jobs while the block runs."""
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # nohup
        before = {number: signal.signal(number, self._ask) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, _: FrameType | None) -> None:
        self.asked = self.asked or signal.Signals(number)
        self._pass_on()

    def _pass_on(self) -> None:
        for process, *_ in self._running.values():
            process.terminate()  # asks: a second one, later, ends it without saving

    def _start(self, job: Job) -> None:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        environment = {"OMP_NUM_THREADS": str(max(cores // self.at_once, 1))} | os.environ
        with job.log.open("ab") as log:
            start = log.tell()
            # A group of its own: a terminal's Ctrl-C reaches it through this process alone, once.
            process = subprocess.Popen(
                job.command,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, process_group=0,
            )  # fmt: skip
        self._running[job] = process, time.monotonic(), start
        if self.asked is not None:  # a signal came while it was started
            process.terminate()

    def _ended(self, job: Job) -> Ended:
        process, since, start = self._running[job]
        with job.log.open("rb") as log:
            log.seek(start)
            said = log.read().decode("utf-8", errors="replace")
        return Ended(job, process.returncode, time.monotonic() - since, said)
