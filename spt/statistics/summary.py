"""Scores → the figures of a run, by direction and by relation.

In: the scores of all questions. Out: plain JSON values, the same whatever the order of the scores. Trade-off: every
metric that was measured gets an interval and a gap, wanted or not: they share their draws, so more of them cost little.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spt.errors import ConfigError
from spt.metrics import METRICS, Metric
from spt.records import DIRECTIONS, Direction, Question, Score
from spt.statistics.bootstrap import gaps, intervals
from spt.statistics.facts import FactTotals, by_fact

CONTROL = "both"
"""The half that was taught both ways: no test of reversal, so outside the headline."""


def tested(questions: Sequence[Question]) -> Sequence[Question]:
    """Return the questions of the headline: all but the control's, or all where there is nothing else."""
    return [question for question in questions if question.relation != CONTROL] or questions


def measured(scores: Sequence[Score]) -> list[Metric]:
    """Return the metrics that any of the scores holds, in the order of the tables."""
    names = {name for score in scores for name in score.metrics}
    return [metric for metric in METRICS.values() if metric.name in names]


def totals(scores: Sequence[Score], name: str, direction: Direction) -> FactTotals:
    """Return the facts' totals of a metric, over the questions of a direction to which it applies."""
    own = [score for score in scores if score.question.direction == direction and name in score.metrics]
    return by_fact([score.metrics[name] for score in own], [score.question.fact_id for score in own])


def summarise(scores: Sequence[Score], *, headline: str, seed: int) -> dict[str, Any]:
    """Return the figures of a run; a direction without questions is None.

    Figures are fractions of 1 unless they name another `unit`. The top level is over every relation but `both`, the
    control (over all, where there is nothing else). Raises ConfigError where the headline metric was not measured.
    """
    scores = sorted(scores, key=lambda score: score.question.id)
    metrics = measured(scores)
    if scores and headline not in [metric.name for metric in metrics]:
        names = ", ".join(metric.name for metric in metrics)
        raise ConfigError(f"evaluate.headline is {headline!r}, but evaluate.metrics has only {names}; add it")
    relations = sorted({score.question.relation for score in scores if score.question.relation is not None})
    kept = set(tested([score.question for score in scores]))
    headlined = [score for score in scores if score.question in kept]
    return {
        "headline": headline,
        "match_rules": {metric.name: metric.rule for metric in metrics},
        **_directions(headlined, metrics, seed),
        "gap": _gaps(headlined, metrics, seed),
        "relations": {
            name: _directions([score for score in scores if score.question.relation == name], metrics, seed)
            for name in relations
        },
    }


def _directions(scores: Sequence[Score], metrics: Sequence[Metric], seed: int) -> dict[str, Any]:
    asked = [(direction, metric) for direction in DIRECTIONS for metric in metrics]
    wanted = [(direction, metric, totals(scores, metric.name, direction)) for direction, metric in asked]
    present = [(direction, metric, side) for direction, metric, side in wanted if side.facts]
    found = intervals([side for *_, side in present], [metric.bounds for _, metric, _ in present], seed=seed)
    result: dict[str, Any] = {}
    for direction in DIRECTIONS:
        own = [score for score in scores if score.question.direction == direction]
        figures = {
            metric.name: asdict(interval) | {"floor": _floor(own, metric.name)} | _unit(metric)
            for (way, metric, _), interval in zip(present, found, strict=True)
            if way == direction
        }
        sizes = {"n_questions": len(own), "n_facts": len({score.question.fact_id for score in own})}
        result[direction] = {**sizes, **figures} if own else None
    return result


def _unit(metric: Metric) -> dict[str, Any]:
    return {} if metric.unit == "fraction" else {"unit": metric.unit}


def _floor(scores: Sequence[Score], name: str) -> float | None:
    values = [score.floors[name] for score in scores if name in score.floors]
    return sum(values) / len(values) if values else None


def _gaps(scores: Sequence[Score], metrics: Sequence[Metric], seed: int) -> dict[str, Any] | None:
    forward, reverse = ([totals(scores, metric.name, way) for metric in metrics] for way in DIRECTIONS)
    found = gaps(list(zip(forward, reverse, strict=True)), [metric.bounds for metric in metrics], seed=seed)
    figures = {
        metric.name: asdict(figure) | _unit(metric) if figure else None
        for metric, figure in zip(metrics, found, strict=True)
    }
    return figures if any(figures.values()) else None
