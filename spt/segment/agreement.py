"""Cuts against cuts: boundary precision, recall and F1.

In: two segmentations of the same texts, as their cuts. Out: counts that add up over texts, and the three rates. A
boundary is the offset where a unit starts; the ends of a text are none. Trade-off: the rates are micro-averages over
all boundaries, so that long texts weigh more.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """How many boundaries each of two segmentations has, and how many they share."""

    shared: int
    first: int
    second: int

    @property
    def precision(self) -> float:
        """Return the share of the first's boundaries that the second has too (1 where the first has none)."""
        return self.shared / self.first if self.first else 1.0

    @property
    def recall(self) -> float:
        """Return the share of the second's boundaries that the first has too (1 where the second has none)."""
        return self.shared / self.second if self.second else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall."""
        total = self.first + self.second
        return 2 * self.shared / total if total else 1.0


def agreement(pairs: Iterable[tuple[Collection[int], Collection[int]]]) -> Agreement:
    """Return the agreement of two segmentations over texts; each pair holds the cuts of one text."""
    shared = first = second = 0
    for left, right in pairs:
        shared += len(set(left) & set(right))
        first += len(set(left))
        second += len(set(right))
    return Agreement(shared, first, second)
