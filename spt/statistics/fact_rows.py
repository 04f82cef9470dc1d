"""Numbers, each row about a fact → the same rows on disk in the order of their facts, and totals of facts.

In: fact ids with numbers, in any order. Out: blocks of columns, a fact never parted; sums and counts a fact. Trade-off:
the rows are sorted once, so that whatever is asked of them later takes memory for the facts, and of the rows for one
block and for which of them are meant, a byte each.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from spt.scratch import open_scratch
from spt.statistics.facts import FactTotals, Floats

Rows = NDArray[np.bool_]
BLOCK = 1 << 14
"""Rows read at once; more where one fact has more."""
_TABLES = "CREATE TABLE given (fact BLOB, numbers BLOB); CREATE TABLE piece (number INTEGER PRIMARY KEY, data BLOB)"
_FACT = 0  # the column that says which fact, by its place among all


class FactRows:
    """Rows of `columns` numbers; a row that is given shorter has no others: they are not numbers.

    `facts` are the ids, sorted. Rows are chosen by masks in the order of the facts: [rows].
    """

    def __init__(self, rows: Iterable[tuple[str, Sequence[float]]]) -> None:
        self._disk = open_scratch(_TABLES)
        finalize(self, self._disk.close)
        self._count = self._blocks = self.columns = 0
        for fact, numbers in rows:
            self.columns = max(self.columns, len(numbers))
            values = fact.encode("utf-8", "surrogatepass"), array("d", numbers).tobytes()
            self._disk.execute("INSERT INTO given VALUES (?, ?)", values)
        self.facts = tuple(self._sort())
        self._disk.execute("DROP TABLE given")
        self._last = self.facts, np.empty(0)

    def __len__(self) -> int:
        return self._count

    def _sort(self) -> Iterator[str]:
        """Yield the facts' ids, sorted, while their rows are written in blocks."""
        block: list[tuple[int, bytes]] = []
        last, place = None, -1
        # Bytes of UTF-8 sort as texts do.
        for fact, numbers in self._disk.execute("SELECT fact, numbers FROM given ORDER BY fact"):
            if fact != last:
                if len(block) >= BLOCK:
                    self._write(block)
                    block = []
                last, place = fact, place + 1
                yield fact.decode("utf-8", "surrogatepass")
            block.append((place, numbers))
        if block:
            self._write(block)

    def _write(self, block: Sequence[tuple[int, bytes]]) -> None:
        table = np.full((1 + self.columns, len(block)), np.nan)
        for number, (place, numbers) in enumerate(block):
            table[_FACT, number] = place
            values = np.frombuffer(numbers)
            table[1 : 1 + len(values), number] = values
        start = self._blocks * len(table)
        pieces = ((start + column, values.tobytes()) for column, values in enumerate(table))
        self._disk.executemany("INSERT INTO piece VALUES (?, ?)", pieces)
        self._count, self._blocks = self._count + len(block), self._blocks + 1

    def column(self, number: int) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """Yield the places of facts and the numbers of a column, a block at a time."""
        for block in range(self._blocks):
            start = block * (1 + self.columns)
            wanted = (start + _FACT, start + 1 + number)
            found = self._disk.execute("SELECT data FROM piece WHERE number IN (?, ?) ORDER BY number", wanted)
            places, values = (np.frombuffer(data) for (data,) in found)
            yield places.astype(np.int64), values

    def where(self, number: int, value: float) -> Rows:
        """Return which rows have a value in a column."""
        return np.concatenate([np.zeros(0, dtype=bool), *(values == value for _, values in self.column(number))])

    def chosen(self, number: int, rows: Rows) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """Yield what `column` does, but only of the rows in which the column is a number."""
        start = 0
        for places, values in self.column(number):
            kept = rows[start : start + len(values)] & ~np.isnan(values)
            start += len(values)
            yield places[kept], values[kept]

    def totals(self, number: int, rows: Rows) -> FactTotals:
        """Return the facts' totals of a column over some rows, where it is a number."""
        sums, counts = np.zeros(len(self.facts)), np.zeros(len(self.facts))
        for places, values in self.chosen(number, rows):
            if not len(values):
                continue
            # In the order of the values, so that a sum's last digit does not depend on the order of the rows.
            order = np.argsort(values, kind="stable")
            first, end = places[0], places[-1] + 1
            sums[first:end] = np.bincount(places[order] - first, weights=values[order])
            counts[first:end] = np.bincount(places - first)
        present = np.flatnonzero(counts)
        facts, counts = self._shared(present, counts[present])
        return FactTotals(facts, sums[present], counts)

    def _shared(self, present: NDArray[np.int64], counts: Floats) -> tuple[tuple[str, ...], Floats]:
        """Return the ids of facts, and the counts; what was returned last where it is equal, as it mostly is."""
        facts = self.facts if len(present) == len(self.facts) else tuple(self.facts[place] for place in present)
        if facts != self._last[0] or not np.array_equal(counts, self._last[1]):
            self._last = facts, counts
        return self._last
