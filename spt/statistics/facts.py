"""Values of questions → totals of facts: the unit of chance.

Questions of one fact stand and fall together, so a fact is drawn with all its questions. In: values with their facts'
ids. Out: sums and counts a fact. Trade-off: two numbers a fact are kept, which is all that a mean of questions needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FactTotals:
    """Facts in the order of their ids, the sum of each one's values and their number: [facts]."""

    facts: tuple[str, ...]
    sums: Floats
    counts: Floats

    @property
    def value(self) -> float:
        """Return the mean over all questions."""
        return float(self.sums.sum() / self.counts.sum())

    @property
    def means(self) -> Floats:
        """Return the mean of each fact: [facts]."""
        return self.sums / self.counts

    def restrict(self, facts: set[str]) -> Self:
        """Return the totals of some of the facts, in the order of their ids."""
        chosen = np.array([fact in facts for fact in self.facts], dtype=bool)
        kept = tuple(fact for fact in self.facts if fact in facts)
        return replace(self, facts=kept, sums=self.sums[..., chosen], counts=self.counts[..., chosen])


Totals = TypeVar("Totals", bound=FactTotals)


def by_fact(values: Sequence[float], fact_ids: Sequence[str]) -> FactTotals:
    """Return the totals of each fact, whatever the order of the questions."""
    assert len(values) == len(fact_ids)
    facts, owner = np.unique(np.array(fact_ids, dtype=object), return_inverse=True)
    sums, counts = (
        np.asarray(np.bincount(owner, weights=weights, minlength=len(facts)), dtype=np.float64)
        for weights in (np.array(values, dtype=np.float64), None)
    )
    return FactTotals(tuple(facts), sums, counts)


def shared(left: Totals, right: Totals) -> tuple[Totals, Totals]:
    """Return both with only the facts that stand in both."""
    if left.facts == right.facts:
        return left, right
    facts = set(left.facts) & set(right.facts)
    return left.restrict(facts), right.restrict(facts)
