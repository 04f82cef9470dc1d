"""Which ids have been seen, and where each stood first.

In: an id and its place. Out: where an equal id stood before. Trade-off: a temporary SQLite database, which SQLite
itself keeps in memory up to its cache and on disk beyond: memory stays flat, at about a microsecond or two a record.
"""

from types import TracebackType
from typing import Self

from spt.scratch import open_scratch

CACHE_KIB = 32 * 1024


class SeenIds:
    """The ids of one pass over a corpus; a context manager."""

    def __init__(self) -> None:
        self._connection = open_scratch(
            "CREATE TABLE seen (id TEXT PRIMARY KEY, source TEXT, line INTEGER) WITHOUT ROWID"
        )
        self._connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._cursor = self._connection.cursor()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def add(self, id_: str, source: str, line: int) -> tuple[str, int] | None:
        """Return None for a new id, which is remembered; else (source, line) of its first place."""
        self._cursor.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (id_, source, line))
        if self._cursor.rowcount:
            return None
        first = self._cursor.execute("SELECT source, line FROM seen WHERE id = ?", (id_,)).fetchone()
        return str(first[0]), int(first[1])
