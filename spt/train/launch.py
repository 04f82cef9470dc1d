"""`--launch N`: this command again, in N processes on this machine, through torch's elastic launcher.

In: a number and this process's own arguments. Out: the exit code of the run. torch starts the processes, watches them,
and ends the others when one fails. Signals are passed on here and not by torch's agent: that one would kill a rank that
takes over 30 seconds to save, and hide its exit code. Trade-off: so the agent lives on a thread, since torch takes the
signals on the main one. Several machines need torchrun or accelerate launch on each.
"""

import logging
import os
import signal
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import psutil
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from spt.errors import InputError, RankError
from spt.progress import say
from spt.train.ranks import asked_world, check_devices, count_devices
from spt.train.stop import GO_ON, last_good

AGENT_SECONDS = 15
"""Between the first failure and this, processes end by themselves; torch's agent kills the rest after 30 seconds."""


def must_launch(ranks: int | None, environment: Mapping[str, str]) -> bool:
    """Return whether this process has to start the others: they are asked for, and no launcher started it.

    Raises InputError where a launcher did, with another number.
    """
    found = asked_world(environment)
    if ranks is None or ranks == found:
        return False
    if "WORLD_SIZE" in environment or found > 1:
        raise InputError(f"--launch {ranks}, but a launcher started {found} processes; leave one of the two out")
    return True


def launch(ranks: int, arguments: list[str], folder: Path) -> int:
    """Return the exit code of `python -m spt ARGUMENTS` in `ranks` processes; each says its own errors.

    Raises InputError where there are not as many devices, RankError where a process was killed; `folder` is the
    training folder whose last good checkpoint that names.
    """
    check_devices(ranks)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not count_devices():
        if ranks > cores:
            say(f"{ranks} processes share {cores} core{'s' * (cores > 1)}: slower than {cores} would be")
        os.environ["ACCELERATE_USE_CPU"] = "true"
    os.environ.setdefault("OMP_NUM_THREADS", str(max(cores // ranks, 1)))
    # It would say that it runs on a thread, and print what failed in a form of its own; we say that below.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    try:
        _on_thread(_config(ranks), ["-m", "spt", *arguments])
    except ChildFailedError as error:
        rank, code = _cause(error.failures)
        if code > 0:
            return code
        raise RankError(
            f"rank {rank} of {ranks} was killed by {signal.Signals(-code).name}, and the run with it. "
            f"{last_good(folder)} {GO_ON}",
            exit_code=128 - code,
        ) from None
    return 0


def _config(ranks: int) -> LaunchConfig:
    return LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )


def _on_thread(config: LaunchConfig, arguments: list[str]) -> None:
    """Run torch's agent to its end on a thread, passing signals on to the processes meanwhile."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            elastic_launch(config, sys.executable)(*arguments)
        except BaseException as error:
            raised.append(error)

    with _passing_signals_on():
        agent = threading.Thread(target=run)
        agent.start()
        agent.join()
    if raised:
        raise raised[0]


@contextmanager
def _passing_signals_on() -> Iterator[None]:
    def pass_on(number: int, _: FrameType | None) -> None:
        children = psutil.Process().children()
        if not children:  # nothing was started yet
            os._exit(128 + number)
        for child in children:
            # A terminal that is closed asks to save as well.
            child.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    taken = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = {number: signal.signal(number, pass_on) for number in taken if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _cause(failures: Mapping[int, ProcessFailure]) -> tuple[int, int]:
    """Return (rank, exit code) of the process that failed first; a negative code is the signal that killed it.

    Of those that had ended when the agent looked (ten times a second), a killed one comes before those that lost their
    connection to it (code 1), and so does one that says what was wrong (2, 75). What ended later, the agent ended: with
    SIGTERM, or with SIGKILL half a minute after.
    """
    first = min(failure.timestamp for failure in failures.values())
    codes = {rank: f.exitcode for rank, f in failures.items() if f.timestamp < first + AGENT_SECONDS}
    own = {rank: code for rank, code in codes.items() if code != -signal.SIGTERM} or codes
    rank = min(own, key=lambda rank: (own[rank] > 0, -own[rank]))
    return rank, own[rank]
