"""Commands, each a process of its own, some at a time; where there are several GPUs, each sees one of them.

In: jobs. Out: each with its exit code, in the order in which they end. A signal to this process is passed on to all of
them as SIGTERM, at which training saves and ends; no more are started. Trade-off: they are looked at ten times a
second, which costs less than threads that wait.
"""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple

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


class _Running(NamedTuple):
    process: subprocess.Popen[bytes]
    since: float
    log_start: int
    gpu: str | None


@dataclass
class Processes:
    """At most `at_once` jobs at a time, spread over `gpus`; `asked` is the first signal that came."""

    at_once: int
    gpus: Sequence[str] = ()
    asked: signal.Signals | None = None
    _running: dict[Job, _Running] = field(default_factory=dict)

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
                ended = [self._ended(job) for job, left in self._running.items() if left.process.poll() is not None]
                for one in ended:
                    del self._running[one.job]
                yield from ended
                if not ended:
                    time.sleep(LOOK_SECONDS)
        finally:
            self._pass_on()
            for left in self._running.values():
                left.process.wait()

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
        for one in self._running.values():
            one.process.terminate()  # asks: a second one, later, ends it without saving

    def _start(self, job: Job) -> None:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        environment = {"OMP_NUM_THREADS": str(max(cores // self.at_once, 1))} | os.environ
        taken = [one.gpu for one in self._running.values()]
        gpu = min(self.gpus, key=taken.count, default=None)
        environment |= {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        with job.log.open("ab") as log:
            start = log.tell()
            # A group of its own: a terminal's Ctrl-C reaches it through this process alone, once.
            process = subprocess.Popen(
                job.command,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, process_group=0,
            )  # fmt: skip
        self._running[job] = _Running(process, time.monotonic(), start, gpu)
        if self.asked is not None:  # a signal came while it was started
            process.terminate()

    def _ended(self, job: Job) -> Ended:
        one, said = self._running[job], ""
        with suppress(FileNotFoundError), job.log.open("rb") as log:  # somebody may have deleted the folder
            log.seek(one.log_start)
            said = log.read().decode("utf-8", errors="replace")
        return Ended(job, one.process.returncode, time.monotonic() - one.since, said)


def find_gpus(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES may name, of which each job is to see one; none where jobs share."""
    import torch

    count = torch.cuda.device_count()
    named = environment.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return tuple(named.split(",")) if count > 1 else ()
