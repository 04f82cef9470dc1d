"""Replies kept on disk, so that nothing is asked twice: one SQLite file for all runs of a user.

In: keys (a hash of model, prompt, decoding and text) and replies. Out: the replies that are there. A reply is there as
soon as `put` returns, so a killed run loses only what was being asked; several processes may read and write at once.
Trade-off: SQLite's write-ahead log needs a local disk; `segment.assistant.cache` moves the file to one.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from spt.assistant.item import Reply
from spt.errors import DamagedError, InputError

T = TypeVar("T")

WAIT = 120.0
"""Seconds that one process waits for another's transaction."""

_KEYS = 500  # SQLite bounds the number of variables in a statement


def default_folder() -> Path:
    """Return the folder of the user's own cache."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "spt"


class ReplyCache:
    """A mapping from keys to replies in `FOLDER/NAME.sqlite`; `remedy` is what helps where none can be kept there.

    `hits` counts replies that were not asked for anew.
    """

    def __init__(
        self,
        folder: str | None,
        name: str = "assistant",
        remedy: str = "set segment.assistant.cache to another folder on a local disk",
    ) -> None:
        self.path = (Path(os.path.expanduser(folder)) if folder else default_folder()) / f"{name}.sqlite"
        self.remedy = remedy
        self.hits = 0

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the replies that are there.

        Raises DamagedError where the file is no cache.
        """
        found: dict[str, Reply] = {}
        with closing(self._open()) as connection:
            for first in range(0, len(keys), _KEYS):
                some = keys[first : first + _KEYS]
                # Only question marks are put into the statement; the keys are bound.
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"SELECT key, reply FROM replies WHERE key IN ({marks})", some)  # noqa: S608  # marks only
                found |= {key: _loads(reply) for key, reply in rows}
        return found

    def answer(
        self, items: Mapping[str, T], ask: Callable[[Sequence[T]], Iterator[Mapping[int, Reply]]]
    ) -> dict[str, Reply]:
        """Return a reply for each key: what is there, and what `ask` yields for the other items, kept as it comes.

        Raises as `get` and `ask` do.
        """
        replies = self.get(list(items))
        self.hits += len(replies)
        missing = [key for key in items if key not in replies]
        for found in ask([items[key] for key in missing]):
            fresh = {missing[position]: reply for position, reply in found.items()}
            self.put(fresh)
            replies |= fresh
        return replies

    def put(self, replies: Mapping[str, Reply]) -> None:
        """Keep replies, all or none; those of failures that may pass are left out."""
        rows = [(key, _dumps(reply)) for key, reply in replies.items() if reply.kept]
        if rows:
            with closing(self._open()) as connection, connection:
                connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        # A connection for each transaction: one that outlives a fork or moves to another thread breaks SQLite's locks.
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for a lock while it switches to write-ahead logging.
            with FileLock(self.path.with_suffix(".lock"), timeout=WAIT):
                connection = sqlite3.connect(self.path, timeout=WAIT)
                return _set_up(connection, self.path, self.remedy)
        except (OSError, sqlite3.OperationalError) as error:
            raise InputError(f"{self.path}: cannot be opened or written ({error}); {self.remedy}") from None


def _set_up(connection: sqlite3.Connection, path: Path, remedy: str) -> sqlite3.Connection:
    try:
        for statement in _SETUP:
            connection.execute(statement)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DamagedError(f"{path}: cannot be used as a cache of replies ({error}); delete it, or {remedy}") from None
    return connection


_SETUP = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID",
)


def _dumps(reply: Reply) -> str:
    fields = {"text": reply.text, "cuts": reply.cuts, "logprobs": reply.logprobs, "failure": reply.failure}
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def _loads(text: str) -> Reply:
    fields = json.loads(text)
    lists: dict[str, Any] = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return Reply(**{**fields, **lists})
