"""Signs of life between processes that share a folder and nothing else.

    FOLDER/0.json, 1.json, ...     what each rank says of itself, written anew every second

In: a folder, this process's rank, the ranks it wants to hear. Out: what they say. Only what changes while it is watched
counts, so that the files of a killed launch say nothing, and all times are by this process's own clock. Trade-off: of a
rank that was killed one learns only that it is silent, and that takes `SILENCE`.
"""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spt.artifact import dump_json

BEAT = 1.0
"""Seconds between two signs of life."""

SILENCE = 120.0
"""Seconds without a sign of life after which a rank counts as gone: NFS may show a file a minute late."""

STATES = ("starting", "open", "drafted", "finished", "failed")
"""What a rank is at. `open`: rank 0 has made the stage ready. `drafted`: a rank's own shards are cut."""


@dataclass
class Peer:
    """Another rank: its file as last read, when that changed, and what it says (nothing yet: {})."""

    text: bytes
    changed: float = field(default_factory=time.monotonic)
    said: Mapping[str, Any] = field(default_factory=dict)

    def has_reached(self, state: str) -> bool:
        """Return whether it has come to `state`, or past it."""
        return bool(self.said) and STATES.index(self.said["state"]) >= STATES.index(state)

    @property
    def silent(self) -> bool:
        """Return whether it counts as gone."""
        return time.monotonic() - self.changed > SILENCE


class Signs:
    """Gives signs of life from `start` to `stop`, and keeps those of others in `peers`."""

    def __init__(self, folder: Path, rank: int, others: Iterable[int]) -> None:
        self.folder = folder
        # What lies there before this rank speaks was not said to it.
        self.peers = {other: Peer(self._read(other)) for other in others}
        self._file = folder / f"{rank}.json"
        self._says: Mapping[str, Any] = {"state": "starting"}
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, at_each: Callable[[], None]) -> None:
        """Begin, and call `at_each` after each look at the others, on a thread. Raises OSError."""
        self._write()
        self._thread = threading.Thread(target=self._live, args=(at_each,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the signs of life."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def tell(self, state: str, **more: Any) -> None:
        """Say what this rank is at, and `more`, beside all that it said before."""
        self._says = {**self._says, "state": state, **more}
        with suppress(OSError):  # the next sign says it again
            self._write()

    def settled(self, other: int, state: str) -> bool:
        """Return whether a rank has come to `state`, or is gone."""
        self.look(other)
        return self.peers[other].has_reached(state) or self.peers[other].silent

    def look(self, other: int) -> None:
        """Take note of what a rank says now."""
        with self._lock:
            text, peer = self._read(other), self.peers[other]
            if text not in (b"", peer.text):
                peer.text, peer.changed, peer.said = text, time.monotonic(), json.loads(text)

    def left(self, other: int) -> bool:
        """Return whether a rank's file is gone."""
        return not self._read(other)

    def remove(self, *, everyone: bool) -> None:
        """Delete this rank's file, or the folder with those of all."""
        if everyone:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        with suppress(OSError):
            self._file.unlink()
            self.folder.rmdir()  # where it was the last

    def _live(self, at_each: Callable[[], None]) -> None:
        while not self._over.wait(BEAT):
            with suppress(OSError):  # a sign that cannot be given is missed
                self._write()
            for other in self.peers:
                self.look(other)
            at_each()

    def _write(self) -> None:
        with self._lock:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Unlike a result it need not outlive a power cut, so it does not wait for the disk.
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(dump_json({**self._says, "at": time.time_ns()}), encoding="utf-8")
            temporary.replace(self._file)

    def _read(self, other: int) -> bytes:
        try:
            return (self.folder / f"{other}.json").read_bytes()
        except OSError:  # not there yet, or just replaced on another machine
            return b""
