"""Several runs → how any two that answered the same questions differ, and whether that could be chance.

In: runs. Out: a row a pair and direction, on the headline metric. Trade-off: up to six runs are compared each with
each, more only with the first of them, so that the table stays short and the correction for its length mild.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from spt.records import Score
from spt.report.load import Run
from spt.statistics import Comparison, holm
from spt.statistics.columns import Columns
from spt.statistics.compare import compare_columns

EACH_WITH_EACH = 6
"""Runs over one set of questions up to which every pair is compared."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Run number `second` minus run number `first`; `figure.p_holm` is corrected for all rows of the report."""

    first: int
    second: int
    figure: Comparison

    @property
    def change(self) -> dict[str, float | None]:
        """Return the difference in the form of every other figure."""
        return {"value": self.figure.difference, "low": self.figure.low, "high": self.figure.high}


def compare_pairs(runs: Sequence[Run]) -> list[Pair]:
    """Return the comparisons of runs that answered the same questions under the same headline metric."""
    found = [pair for members in _groups(runs) for pair in _compare(runs, members)]
    corrected = holm([pair.figure.p_value for pair in found])
    return [
        replace(pair, figure=replace(pair.figure, p_holm=p_holm)) for pair, p_holm in zip(found, corrected, strict=True)
    ]


def _groups(runs: Sequence[Run]) -> list[list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault((run.questions, run.headline), []).append(number)
    return list(groups.values())


def _compare(runs: Sequence[Run], members: Sequence[int]) -> list[Pair]:
    if len(members) < 2:
        return []
    headline = runs[members[0]].headline
    read = {number: Columns(_headline_scores(runs[number])) for number in members}
    # Where the metric applies to no question, there is nothing to compare.
    measured = [number for number, columns in read.items() if _is_measured(columns, headline)]
    pairs = list(combinations(measured, 2))
    if len(measured) > EACH_WITH_EACH:
        pairs = [(measured[0], number) for number in measured[1:]]
    return [
        Pair(first, second, figure)
        for first, second in pairs
        for figure in compare_columns(read[first], read[second], [headline])
    ]


def _is_measured(columns: Columns, headline: str) -> bool:
    return bool(columns.metrics) and bool(columns.totals(headline, columns.tested()).facts)


def _headline_scores(run: Run) -> Iterator[Score]:
    # Only what a comparison reads is kept.
    name = run.headline
    for score in run.scores():
        kept = {name: score.metrics[name]} if name in score.metrics else {}
        yield replace(score, metrics=kept, floors={})
