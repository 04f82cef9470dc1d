"""The ranks of one launch, before any process group exists: who cuts which shard, and one end for all.

In: the launcher's environment (WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT) and a folder that all ranks see. Out: this
rank's share; what the others say; the failure of another, as an interruption of whatever this one is at. Trade-off:
ranks talk through files (`signs`), which is slow and needs no network. A collective would need one, and its watchdog
would cut long work off.
"""

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spt.errors import CorpusError, InputError, SptError, WorkError
from spt.preprocess import signs
from spt.preprocess.signs import Peer, Signs

FAREWELL = 60.0
"""Seconds that rank 0, having failed, gives the others to hear of it: one may still be starting."""

GRACE = 3.0
"""Seconds that the others give rank 0 to say what went wrong: a launcher ends all ranks when one has ended."""


class Ranks:
    """The `world` processes of a launch, as one of them sees it: rank 0 hears all others, these hear rank 0."""

    def __init__(self, folder: Path, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world
        self._signs = Signs(folder, rank, range(1, world) if rank == 0 else (0,))
        self._end: BaseException | None = None
        self._listening = False

    @property
    def main(self) -> bool:
        """Return whether this rank writes the result."""
        return self.rank == 0

    @property
    def peers(self) -> Mapping[int, Peer]:
        """Return the ranks that this one hears: none where it is alone."""
        return self._signs.peers

    def owns(self, index: int) -> bool:
        """Return whether a shard is this rank's to cut."""
        return index % self.world == self.rank

    def tell(self, state: str, **more: Any) -> None:
        """Tell the other ranks what this one is at, and `more`."""
        if self.peers:
            self._signs.tell(state, **more)

    def wait(self, rank: int, state: str) -> Mapping[str, Any] | None:
        """Return what a rank says once it has come to `state`, None where it is gone.

        Raises what ends this rank's work: the failure of another.
        """
        while True:
            settled = self._signs.settled(rank, state)
            self._judge()
            if self._end is not None:
                raise self._end
            if settled:
                return self.peers[rank].said if self.peers[rank].has_reached(state) else None
            time.sleep(signs.BEAT / 10)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let the failure of another rank interrupt this one, whatever it is at, and raise it."""
        self._listening = True
        try:
            yield
        except KeyboardInterrupt:
            if self._end is None:  # a real one
                raise
            raise self._end from None
        finally:
            self._listening = False

    def start(self) -> None:
        """Begin to speak and to hear. Raises InputError where nothing can be written."""
        # Not SIGINT: a shell tells its background processes to ignore that.
        signal.signal(signal.SIGUSR1, self._interrupt)
        try:
            self._signs.start(self._heard)
        except OSError as error:
            place = self._signs.folder.parent
            raise InputError(f"{place}: cannot be written to ({error.strerror}); choose another --output") from None

    def fail(self, error: BaseException) -> None:
        """Tell the others that this rank failed, and return when the one that says why has had the time for it."""
        code = error.exit_code if isinstance(error, SptError) else 1
        self.tell("failed", message=self._message(error), exit_code=code)
        until = time.monotonic() + FAREWELL
        if self.main:
            while not all(self._knows(other) for other in self.peers) and time.monotonic() < until:
                time.sleep(signs.BEAT / 10)
        else:
            while not self._signs.settled(0, "failed"):
                time.sleep(signs.BEAT / 10)
            self.tell("failed", heard=True)  # rank 0 takes its word back when it leaves, so it waits for this
            while not (self._signs.left(0) or self.peers[0].silent):
                time.sleep(signs.BEAT / 10)
            time.sleep(GRACE)

    def _knows(self, other: int) -> bool:
        """Return whether a rank need not be told that this one failed: it is done, gone, or has heard."""
        self._signs.look(other)
        peer = self.peers[other]
        return peer.silent or peer.said.get("state") == "finished" or "heard" in peer.said

    def said_by_main(self) -> bool:
        """Return whether rank 0 says why this launch failed: it said so, or has left, which it does last of all."""
        first = self.peers.get(0)
        return first is not None and (first.has_reached("failed") or (self._signs.left(0) and not first.silent))

    def stop(self) -> None:
        """Fall silent, and leave no file behind."""
        self._signs.stop()
        if self.main or self._signs.left(0):
            self._signs.remove(everyone=self.main)

    def _heard(self) -> None:
        self._judge()
        if self._end is not None and self._listening:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def _interrupt(self, *_: Any) -> None:
        if self._listening:
            self._listening = False  # once: what it interrupts has to clean up
            raise KeyboardInterrupt

    def _judge(self) -> None:
        """Set what ends this rank's work, where something does."""
        for other, peer in self.peers.items():
            if peer.has_reached("failed"):
                self._end = self._end or self._failure(peer.said)
            elif peer.silent and not self.main:
                gone = WorkError(f"rank {other} gave no sign of life for {signs.SILENCE:.0f} s; run again to go on")
                # One of those who miss it says so.
                self._end = self._end or (gone if self.rank == 1 else SystemExit(gone.exit_code))

    def _failure(self, said: Mapping[str, Any]) -> BaseException:
        if not self.main:
            return SystemExit(said["exit_code"])
        return (InputError if said["exit_code"] == InputError.exit_code else WorkError)(said["message"])

    def _message(self, error: BaseException) -> str:
        if isinstance(error, CorpusError):  # it has a place of its own, the same on every rank
            return str(error)
        return f"rank {self.rank} of {self.world}: {error if isinstance(error, SptError) else repr(error)}"


@contextmanager
def joined(output: Path) -> Iterator[Ranks]:
    """Yield this process among the ranks of its launch; alone where there is no launcher.

    An error on one rank ends all, and rank 0 says it: the others exit with its code, in silence.
    """
    rank, world = _place_in_launch()
    # Launches at one time differ in where their ranks meet.
    meeting = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
    ranks = Ranks(output / f".ranks-{hashlib.sha256(meeting.encode()).hexdigest()[:8]}", rank, world)
    if world == 1:
        yield ranks
        return
    ranks.start()
    try:
        yield ranks
        ranks.tell("finished")
        for other in ranks.peers:
            ranks.wait(other, "finished")
    except BaseException as error:
        ranks.fail(error)
        if isinstance(error, SptError) and ranks.said_by_main():
            raise SystemExit(error.exit_code) from None
        raise
    finally:
        ranks.stop()


def _place_in_launch() -> tuple[int, int]:
    given = {name: os.environ.get(name, default) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"))}
    if not all(value.isdigit() for value in given.values()) or int(given["RANK"]) >= int(given["WORLD_SIZE"]):
        listed = ", ".join(f"{name}={value}" for name, value in given.items())
        raise InputError(f"{listed}: RANK must be below WORLD_SIZE; start the processes with torchrun, or unset both")
    return int(given["RANK"]), int(given["WORLD_SIZE"])
