"""The scores of two runs on the same questions → how they differ, and whether that could be chance.

In: the scores of both runs. Out: one row a direction and metric. Trade-off: runs that did not answer the same questions
are refused rather than cut to what they share, since which questions are missing may be no chance. What was asked lies
on disk meanwhile, so that memory grows with the facts alone.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice, product
from sqlite3 import Connection

from spt.errors import ConfigError, QuestionError
from spt.metrics import METRICS
from spt.records import DIRECTIONS, Direction, Score
from spt.scratch import open_scratch
from spt.statistics.bootstrap import DRAWS, gaps
from spt.statistics.columns import Columns
from spt.statistics.facts import FactTotals
from spt.statistics.permutation import holm

_SHOWN = 5
_ASKED = "CREATE TABLE asked (id BLOB, run INTEGER, question TEXT, PRIMARY KEY (id, run)) WITHOUT ROWID"
_DIFFERENT = (
    ("only in the first", "SELECT id FROM asked GROUP BY id HAVING count(*) = 1 AND max(run) = 0 ORDER BY id"),
    ("only in the second", "SELECT id FROM asked GROUP BY id HAVING count(*) = 1 AND max(run) = 1 ORDER BY id"),
    (
        "asked otherwise under the same id",
        "SELECT id FROM asked GROUP BY id HAVING count(DISTINCT question) = 2 ORDER BY id",
    ),
)


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
    first: Iterable[Score],
    second: Iterable[Score],
    metrics: Iterable[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Comparison]:
    """Return a row for each direction and metric (default: all that both runs measured), without the control.

    Each run is read once, one score at a time. Raises QuestionError where the runs did not answer the same questions,
    ConfigError for a metric that one lacks.
    """
    with closing(open_scratch(_ASKED)) as asked:
        left, right = (Columns(_noted(scores, run, asked)) for run, scores in enumerate((first, second)))
        _check_same(asked)
    return compare_columns(left, right, metrics, draws=draws, seed=seed)


def compare_columns(
    first: Columns,
    second: Columns,
    metrics: Iterable[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Comparison]:
    """Return what `compare_runs` does, for runs that are known to have answered the same questions."""
    left, right = (_totals(side) for side in (first, second))
    names = {name for _, name in left} & {name for _, name in right}
    common = [name for name in METRICS if name in names]
    if metrics is not None:
        wanted = set(metrics)
        _check_measured(wanted, common)
        common = [name for name in common if name in wanted]
    asked = [way for way in product(DIRECTIONS, common) if way in left and way in right]
    pairs = [(right[way], left[way]) for way in asked]
    found = gaps(pairs, [METRICS[name].bounds for _, name in asked], draws=draws, seed=seed)
    rows = [(*way, figure) for way, figure in zip(asked, found, strict=True) if figure]
    corrected = holm([figure.p_value for *_, figure in rows])
    return [
        Comparison(way, name, figure.value, figure.low, figure.high, figure.p_value, p_holm, figure.n_facts)
        for (way, name, figure), p_holm in zip(rows, corrected, strict=True)
    ]


def _totals(columns: Columns) -> dict[tuple[Direction, str], FactTotals]:
    """Return the totals of each direction and metric that the headline's questions have."""
    ways = {direction: columns.tested() & columns.of_direction(direction) for direction in DIRECTIONS}
    found = {
        (direction, metric.name): columns.totals(metric.name, rows)
        for direction, rows in ways.items()
        for metric in columns.metrics
    }
    return {way: totals for way, totals in found.items() if totals.facts}


def _noted(scores: Iterable[Score], run: int, asked: Connection) -> Iterator[Score]:
    """Yield scores, having noted what was asked."""
    for score in scores:
        question = score.question
        label, row = question.id.encode("utf-8", "surrogatepass"), json.dumps(asdict(question))
        asked.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (label, run, row))
        yield score


def _check_same(asked: Connection) -> None:
    problems = []
    for words, statement in _DIFFERENT:
        ids = (label.decode("utf-8", "surrogatepass") for (label,) in asked.execute(statement))
        shown, more = ", ".join(map(repr, islice(ids, _SHOWN))), sum(1 for _ in ids)
        if shown:
            problems.append(f"{words}: {shown}" + (f" and {more} more" if more else ""))
    if problems:
        raise QuestionError(
            f"the two runs did not answer the same questions ({'; '.join(problems)}); evaluate both on one file"
        )


def _check_measured(wanted: set[str], common: Sequence[str]) -> None:
    missing = sorted(wanted.difference(common))
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: not measured in both runs, which share {', '.join(common) or 'none'}; name one of "
            "these, or evaluate both runs with it in evaluate.metrics"
        )
