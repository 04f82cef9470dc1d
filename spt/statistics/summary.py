"""Scores → the figures of a run, by direction and by relation.

In: the scores of all questions. Out: plain JSON values, the same whatever the order of the scores. Trade-off: every
metric that was measured gets an interval and a gap, wanted or not: they share their draws, so more of them cost little.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from spt.benchmark.question_table import QuestionTable
from spt.errors import ConfigError
from spt.metrics import Metric
from spt.records import DIRECTIONS, Question, Score
from spt.statistics.bootstrap import gaps, intervals
from spt.statistics.columns import CONTROL, Columns
from spt.statistics.fact_rows import Rows


def tested(questions: Sequence[Question]) -> Sequence[Question]:
    """Return the questions of the headline: all but the control's, or all where there is nothing else."""
    kept = QuestionTable(question for question in questions if question.relation != CONTROL)
    return kept if len(kept) else questions


def summarise(scores: Iterable[Score], *, headline: str, seed: int) -> dict[str, Any]:
    """Return the figures of a run; a direction without questions is None. Only numbers of the scores are kept.

    Figures are fractions of 1 unless they name another `unit`. The top level is over every relation but `both`, the
    control (over all, where there is nothing else). Raises ConfigError where the headline metric was not measured.
    """
    columns = Columns(scores)
    metrics = columns.metrics
    if len(columns) and headline not in [metric.name for metric in metrics]:
        names = ", ".join(metric.name for metric in metrics) or "nothing"
        raise ConfigError(
            f"evaluate.headline: no question was measured by {headline}, only by {names}; add it to evaluate.metrics, "
            "or name another metric"
        )
    headlined = columns.tested()
    return {
        "headline": headline,
        "match_rules": {metric.name: metric.rule for metric in metrics},
        **_directions(columns, headlined, metrics, seed),
        "gap": _gaps(columns, headlined, metrics, seed),
        "relations": {
            name: _directions(columns, columns.of_relation(name), metrics, seed) for name in columns.relations
        },
    }


def _directions(columns: Columns, rows: Rows, metrics: Sequence[Metric], seed: int) -> dict[str, Any]:
    ways = {direction: rows & columns.of_direction(direction) for direction in DIRECTIONS}
    asked = [(direction, metric) for direction in DIRECTIONS for metric in metrics]
    wanted = [(direction, metric, columns.totals(metric.name, ways[direction])) for direction, metric in asked]
    present = [(direction, metric, side) for direction, metric, side in wanted if side.facts]
    found = intervals([side for *_, side in present], [metric.bounds for _, metric, _ in present], seed=seed)
    result: dict[str, Any] = {}
    for direction, own in ways.items():
        figures = {
            metric.name: asdict(interval) | {"floor": columns.floor(metric.name, own)} | _unit(metric)
            for (way, metric, _), interval in zip(present, found, strict=True)
            if way == direction
        }
        sizes = {"n_questions": int(own.sum()), "n_facts": columns.count_facts(own)}
        result[direction] = {**sizes, **figures} if own.any() else None
    return result


def _unit(metric: Metric) -> dict[str, Any]:
    return {} if metric.unit == "fraction" else {"unit": metric.unit}


def _gaps(columns: Columns, rows: Rows, metrics: Sequence[Metric], seed: int) -> dict[str, Any] | None:
    ways = [rows & columns.of_direction(direction) for direction in DIRECTIONS]
    forward, reverse = ([columns.totals(metric.name, way) for metric in metrics] for way in ways)
    found = gaps(list(zip(forward, reverse, strict=True)), [metric.bounds for metric in metrics], seed=seed)
    figures = {
        metric.name: asdict(figure) | _unit(metric) if figure else None
        for metric, figure in zip(metrics, found, strict=True)
    }
    return figures if any(figures.values()) else None
