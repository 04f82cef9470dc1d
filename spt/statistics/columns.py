"""Scores → columns of numbers: what a summary needs of a score, and nothing of its texts.

In: scores, one at a time. Out: totals of facts and means of floors, the same whatever the order of the scores.
Trade-off: every metric takes eight bytes a question, whether it applies to the question or not (a gap is not a number).
"""

from array import array
from collections.abc import Iterable
from math import fsum, nan

import numpy as np
from numpy.typing import NDArray

from spt.metrics import METRICS, Metric
from spt.records import DIRECTIONS, Direction, Score
from spt.statistics.facts import FactTotals

Rows = NDArray[np.bool_]


class Columns:
    """The numbers of many scores. Rows are chosen by masks: [scores]."""

    def __init__(self, scores: Iterable[Score] = ()) -> None:
        self._facts: dict[str, int] = {}
        self._relations: dict[str | None, int] = {}
        self._fact, self._relation, self._direction = array("q"), array("q"), array("b")
        self._values: dict[str, array[float]] = {}
        self._floors: dict[str, array[float]] = {}
        for score in scores:
            self._add(score)
        self._names = sorted(self._facts)
        places = {name: place for place, name in enumerate(self._names)}
        of_code = np.array([places[name] for name in self._facts], dtype=np.int64)
        self._place = of_code[np.array(self._fact, dtype=np.int64)]

    def __len__(self) -> int:
        return len(self._fact)

    def _add(self, score: Score) -> None:
        question, count = score.question, len(self)
        for columns, numbers in ((self._values, score.metrics), (self._floors, score.floors)):
            for name in numbers.keys() - columns.keys():
                columns[name] = array("d", [nan]) * count
            for name, column in columns.items():
                column.append(numbers.get(name, nan))
        self._fact.append(self._facts.setdefault(question.fact_id, len(self._facts)))
        self._relation.append(self._relations.setdefault(question.relation, len(self._relations)))
        self._direction.append(DIRECTIONS.index(question.direction))

    @property
    def metrics(self) -> list[Metric]:
        """Return the metrics that any score holds, in the order of the tables."""
        return [metric for metric in METRICS.values() if metric.name in self._values]

    @property
    def relations(self) -> list[str]:
        """Return the relations that have a name, sorted."""
        return sorted(relation for relation in self._relations if relation is not None)

    def of_relation(self, relation: str) -> Rows:
        """Return which rows are of a relation."""
        rows: Rows = np.array(self._relation) == self._relations.get(relation, -1)
        return rows

    def of_direction(self, direction: Direction) -> Rows:
        """Return which rows ask in a direction."""
        rows: Rows = np.array(self._direction) == DIRECTIONS.index(direction)
        return rows

    def count_facts(self, rows: Rows) -> int:
        """Return how many facts the rows are about."""
        return len(np.unique(self._place[rows]))

    def totals(self, name: str, rows: Rows) -> FactTotals:
        """Return the facts' totals of a metric, over those of the rows to which it applies."""
        values = np.array(self._values[name])
        rows = rows & ~np.isnan(values)
        # In the order of the values, so that a sum's last digit does not depend on the order of the scores.
        order = np.argsort(values[rows], kind="stable")
        values, places = values[rows][order], self._place[rows][order]
        counts = np.bincount(places, minlength=len(self._names))
        sums = np.bincount(places, weights=values, minlength=len(self._names)).astype(np.float64)
        present = np.flatnonzero(counts)
        facts = tuple(self._names[place] for place in present)
        return FactTotals(facts, sums[present], counts[present].astype(np.float64))

    def floor(self, name: str, rows: Rows) -> float | None:
        """Return the mean of a metric's floors over the rows that have one."""
        if name not in self._floors:
            return None
        values = np.array(self._floors[name])[rows]
        values = values[~np.isnan(values)]
        return fsum(values) / len(values) if len(values) else None
