"""The scores of two runs on the same questions → how they differ, and whether that could be chance.

In: the scores of both runs. Out: one row a direction and metric. Trade-off: runs that did not answer the same questions
are refused rather than cut to what they share, since which questions are missing may be no chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spt.errors import ConfigError, QuestionError
from spt.records import DIRECTIONS, Direction, Question, Score
from spt.statistics.bootstrap import DRAWS, gaps
from spt.statistics.permutation import holm
from spt.statistics.summary import measured, tested, totals

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second run minus the first in one metric and direction, over facts, paired.

    `p_value` is two-sided, from a sign-flip permutation test on the facts' means; `p_holm` is corrected for the number
    of rows it came with.
    """

    direction: Direction
    metric: str
    difference: float
    low: float | None
    high: float | None
    p_value: float
    p_holm: float
    n_facts: int


def compare_runs(
    first: Sequence[Score],
    second: Sequence[Score],
    metrics: Iterable[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Comparison]:
    """Return a row for each direction and metric (default: all that both runs measured), without the control.

    Raises QuestionError where the runs did not answer the same questions, ConfigError for a metric that one lacks.
    """
    _check_same([score.question for score in first], [score.question for score in second])
    kept = {question.id for question in tested([score.question for score in first])}
    sides = [[score for score in run if score.question.id in kept] for run in (first, second)]
    common = [metric for metric in measured(sides[0]) if metric in measured(sides[1])]
    if metrics is not None:
        wanted = set(metrics)
        _check_measured(wanted, [metric.name for metric in common])
        common = [metric for metric in common if metric.name in wanted]
    asked = [(direction, metric) for direction in DIRECTIONS for metric in common]
    pairs = [(totals(sides[1], metric.name, way), totals(sides[0], metric.name, way)) for way, metric in asked]
    found = gaps(pairs, [metric.bounds for _, metric in asked], draws=draws, seed=seed)
    rows = [(way, metric.name, figure) for (way, metric), figure in zip(asked, found, strict=True) if figure]
    corrected = holm([figure.p_value for *_, figure in rows])
    return [
        Comparison(way, name, figure.value, figure.low, figure.high, figure.p_value, p_holm, figure.n_facts)
        for (way, name, figure), p_holm in zip(rows, corrected, strict=True)
    ]


def _check_same(first: Sequence[Question], second: Sequence[Question]) -> None:
    left, right = ({question.id: question for question in side} for side in (first, second))
    problems = [
        f"only in the {name}: {_listed(ids)}"
        for name, ids in (("first", left.keys() - right.keys()), ("second", right.keys() - left.keys()))
        if ids
    ]
    changed = {name for name in left.keys() & right.keys() if left[name] != right[name]}
    problems += [f"asked otherwise under the same id: {_listed(changed)}"] if changed else []
    if problems:
        raise QuestionError(
            f"the two runs did not answer the same questions ({'; '.join(problems)}); evaluate both on one file"
        )


def _check_measured(wanted: set[str], common: Sequence[str]) -> None:
    missing = sorted(wanted.difference(common))
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: not measured in both runs, which share {', '.join(common)}; name one of these, or "
            "evaluate both runs with it in evaluate.metrics"
        )


def _listed(ids: Iterable[str]) -> str:
    ordered = sorted(ids)
    more = len(ordered) - _SHOWN
    return ", ".join(map(repr, ordered[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
