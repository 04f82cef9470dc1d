"""Several runs → how any two that answered the same questions differ, and whether that could be chance.

In: runs. Out: a row a pair and direction, on the headline metric. Trade-off: up to six runs are compared each with
each, more only with the first of them, so that the table stays short and the correction for its length mild.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from spt.metrics import METRICS
from spt.records import DIRECTIONS, Direction, Score
from spt.report.load import Run
from spt.statistics import holm
from spt.statistics.bootstrap import Gap, gaps
from spt.statistics.columns import Columns
from spt.statistics.facts import FactTotals

EACH_WITH_EACH = 6
"""Runs over one set of questions up to which every pair is compared."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Run number `second` minus run number `first` over the headline's facts, paired.

    `p_holm` is the p-value corrected for all rows of the report.
    """

    first: int
    second: int
    direction: Direction
    metric: str
    gap: Gap
    p_holm: float


def compare_pairs(runs: Sequence[Run]) -> list[Pair]:
    """Return the comparisons of runs that answered the same questions under the same headline metric."""
    found = [row for members in _groups(runs) for row in _compare(runs, members)]
    corrected = holm([gap.p_value for *_, gap in found])
    return [Pair(*row, p_holm) for row, p_holm in zip(found, corrected, strict=True)]


def _groups(runs: Sequence[Run]) -> list[list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault((run.questions, run.headline), []).append(number)
    return list(groups.values())


def _compare(runs: Sequence[Run], members: Sequence[int]) -> Iterator[tuple[int, int, Direction, str, Gap]]:
    if len(members) < 2:
        return
    headline = runs[members[0]].headline
    totals = {number: _totals(runs[number]) for number in members}
    # Where the metric applies to no question, there is nothing to compare.
    measured = [number for number, sides in totals.items() if any(side.facts for side in sides)]
    pairs = list(combinations(measured, 2))
    if len(measured) > EACH_WITH_EACH:
        pairs = [(measured[0], number) for number in measured[1:]]
    for first, second in pairs:
        sides = list(zip(totals[second], totals[first], strict=True))
        found = gaps(sides, [METRICS[headline].bounds] * len(sides))
        for direction, gap in zip(DIRECTIONS, found, strict=True):
            if gap is not None:
                yield first, second, direction, headline, gap


def _totals(run: Run) -> list[FactTotals]:
    """Return the headline's totals of a run, by direction."""
    columns = Columns(_headline_scores(run))
    return [columns.totals(run.headline, columns.tested() & columns.of_direction(way)) for way in DIRECTIONS]


def _headline_scores(run: Run) -> Iterator[Score]:
    # Only what a comparison reads is kept.
    name = run.headline
    for score in run.scores():
        kept = {name: score.metrics[name]} if name in score.metrics else {}
        yield replace(score, metrics=kept, floors={})
