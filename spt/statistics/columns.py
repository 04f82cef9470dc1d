"""Scores → columns of numbers: what a summary needs of a score, and nothing of its texts.

In: scores, one at a time. Out: totals of facts and means of floors, the same whatever the order of the scores.
Trade-off: the numbers lie on disk and a column is read again for each total, so that memory grows with the facts.
"""

from collections.abc import Iterable
from math import fsum, nan

import numpy as np

from spt.metrics import METRICS, Metric
from spt.records import DIRECTIONS, Direction, Score
from spt.statistics.fact_rows import FactRows, Rows
from spt.statistics.facts import FactTotals

CONTROL = "both"
"""The half that was taught both ways: no test of reversal, so outside the headline."""
_DIRECTION, _RELATION = 0, 1  # the first columns; metrics and floors follow


class Columns:
    """The numbers of many scores. Rows are chosen by masks: [scores], in the order of their facts."""

    def __init__(self, scores: Iterable[Score] = ()) -> None:
        self._relations: dict[str | None, int] = {}
        self._values: dict[str, int] = {}
        self._floors: dict[str, int] = {}
        self._rows = FactRows((score.question.fact_id, self._numbers(score)) for score in scores)

    def __len__(self) -> int:
        return len(self._rows)

    def _numbers(self, score: Score) -> list[float]:
        question = score.question
        relation = self._relations.setdefault(question.relation, len(self._relations))
        found: dict[int, float] = {_DIRECTION: DIRECTIONS.index(question.direction), _RELATION: relation}
        for places, numbers in ((self._values, score.metrics), (self._floors, score.floors)):
            for name, number in numbers.items():
                found[places.setdefault(name, 2 + len(self._values) + len(self._floors))] = number
        return [found.get(place, nan) for place in range(1 + max(found))]

    @property
    def metrics(self) -> list[Metric]:
        """Return the metrics that any of the scores holds, in the order of the tables."""
        return [metric for metric in METRICS.values() if metric.name in self._values]

    @property
    def relations(self) -> list[str]:
        """Return the relations that have a name, sorted."""
        return sorted(relation for relation in self._relations if relation is not None)

    def of_relation(self, relation: str) -> Rows:
        """Return which rows are of a relation."""
        return self._rows.where(_RELATION, self._relations.get(relation, -1))

    def tested(self) -> Rows:
        """Return which rows the headline is over: all but the control's, or all where there is nothing else."""
        control = self.of_relation(CONTROL)
        return ~control if not control.all() else control

    def of_direction(self, direction: Direction) -> Rows:
        """Return which rows ask in a direction."""
        return self._rows.where(_DIRECTION, DIRECTIONS.index(direction))

    def count_facts(self, rows: Rows) -> int:
        """Return how many facts the rows are about."""
        return sum(len(np.unique(places)) for places, _ in self._rows.chosen(_DIRECTION, rows))

    def totals(self, name: str, rows: Rows) -> FactTotals:
        """Return the facts' totals of a metric, over those of the rows that have it."""
        if name not in self._values:
            return FactTotals((), np.empty(0), np.empty(0))
        return self._rows.totals(self._values[name], rows)

    def floor(self, name: str, rows: Rows) -> float | None:
        """Return the mean of a metric's floors over the rows that have one."""
        if name not in self._floors:
            return None
        count = sum(len(values) for _, values in self._rows.chosen(self._floors[name], rows))
        total = fsum(value for _, values in self._rows.chosen(self._floors[name], rows) for value in values.tolist())
        return total / count if count else None
