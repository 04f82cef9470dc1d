"""One experiment of a comparison → the figures of its methods, as `report.json` holds them.

In: the measured cells. Out: plain JSON values: of each method the accuracies, guards, fluency, retention, tokens and
time, and the differences of methods. Trade-off: whatever has no parts on disk for some seed (leakage, an older
evaluation) is a mean over seeds without an interval.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from spt.compare.gather import Experiment, Group, Measured, Method
from spt.compare.intervals import Figure, Grid, common, draw_means, figure, interval, make_grid, share, spread
from spt.compare.pairs import best_methods, compare_methods
from spt.metrics import METRICS, Metric
from spt.records import DIRECTIONS
from spt.report.figures import is_share
from spt.statistics.bootstrap import exponentials
from spt.statistics.facts import FactTotals
from spt.statistics.permutation import sign_flip

Json = dict[str, Any]


def measure_experiment(experiment: Experiment, baseline: str, place: Path) -> Json:
    """Return the experiment's figures; `place` is the folder that links start from."""
    known = experiment.measured
    metric = METRICS[known[0].run.headline] if known else None
    names = [method.name for method in experiment.methods]
    methods = [_measure(method, metric, place) for method in experiment.methods]
    pairs, best = [], list[str]()
    if metric:
        grids = {
            (method.name, direction): grid
            for method in experiment.methods
            for direction in DIRECTIONS
            if (grid := _grid(method, (None, direction)))
        }
        ordered = sorted(names, key=lambda name: name != baseline)
        pairs = compare_methods(grids, ordered, metric.bounds)
        best = best_methods({method["name"]: method["reversed"] for method in methods}, pairs)
    return {
        "name": experiment.name,
        "headline": metric and metric.name,
        "match_rule": metric and metric.rule,
        "budgets": _budgets(experiment.methods),
        "methods": [method | {"best": method["name"] in best} for method in methods],
        "pairs": pairs,
    }


def _budgets(methods: Sequence[Method]) -> list[Json]:
    """Return each budget with the methods that had it, in the order in which they are first met."""
    found: dict[tuple[str, Any], list[str]] = {}
    for method in methods:
        for cell in method.cells:
            found.setdefault((cell.budget["kind"], cell.budget["value"]), []).append(method.name)
    return [{"kind": kind, "value": value, "methods": list(dict.fromkeys(own))} for (kind, value), own in found.items()]


def _measure(method: Method, metric: Metric | None, place: Path) -> Json:
    cells = [
        {"seed": cell.seed, "state": cell.state, "folder": Path(os.path.relpath(cell.folder, place)).as_posix()}
        for cell in method.cells
    ]
    own = method.measured
    seeds = [measured.cell.seed for measured in own]
    named = {"name": method.name, "seeds": seeds, "cells": cells}
    if not own or metric is None:
        return named | dict.fromkeys(_FIGURES) | {"relations": {}, "guards": {}, "curve": []}
    relations = own[0].run.relations
    return {
        **named,
        **_directions(method, None, metric),
        "gap": _gap(method, metric),
        "relations": {relation: _directions(method, relation, metric) for relation in relations},
        "guards": _guards(method),
        "fluency": _fluency(own),
        "perplexity": _perplexity(method),
        "tokens": spread([measured.run.train.get("tokens") for measured in own]),
        "seconds": spread([measured.run.seconds for measured in own]),
        "curve": _curve(own, metric.name),
    }


_FIGURES = (*DIRECTIONS, "gap", "fluency", "perplexity", "tokens", "seconds")


def _grid(method: Method, group: Group) -> Grid | None:
    return _grid_of(method, lambda measured: measured.totals.get(group))


def _grid_of(method: Method, totals: Callable[[Measured], FactTotals | None]) -> Grid | None:
    found = {measured.cell.seed: totals(measured) for measured in method.measured}
    return make_grid({seed: own for seed, own in found.items() if own is not None})


def _directions(method: Method, relation: str | None, metric: Metric) -> Json:
    result: Json = {}
    for direction in DIRECTIONS:
        grid = _grid(method, (relation, direction))
        questions, facts = method.measured[0].sizes.get((relation, direction), (0, 0))
        sizes = {"n_questions": questions, "n_facts": facts}
        result[direction] = figure(grid, draw_means([grid])[0], metric.bounds) | sizes if grid else None
    return result


def _gap(method: Method, metric: Metric) -> Json | None:
    sides = [_grid(method, (None, direction)) for direction in DIRECTIONS]
    both = common(sides[0], sides[1]) if sides[0] and sides[1] else None
    if both is None:
        return None
    forward, reverse = both
    drawn = draw_means(both)
    width = metric.bounds[1] - metric.bounds[0]
    (p_value,) = sign_flip([forward.means - reverse.means], draws=len(drawn[0]))
    found = interval(forward.value - reverse.value, forward.cells - reverse.cells, drawn[0] - drawn[1], (-width, width))
    return found | {"p_value": p_value, "n_facts": len(forward.facts)}


def _guards(method: Method) -> Json:
    found: Json = {}
    runs = [measured.run for measured in method.measured]
    for name in dict.fromkeys(name for run in runs for name in run.guards):
        figures = [guard for run in runs if (guard := run.guards.get(name))]
        named = {key: _first(figures, key) for key in ("label", "rule", "unit", "reason", "n")}
        values = [guard["value"] for guard in figures if guard.get("value") is not None]
        grid = _parts_grid(method, name, len(values))
        if not values:
            value: Figure = {"value": None, "low": None, "high": None}
        elif grid is None:
            value = {"value": sum(values) / len(values), "low": None, "high": None}
        else:
            value = _part_figure(grid, share=is_share(named))
        found[name] = named | value
    return found


def _parts_grid(method: Method, name: str, seeds: int) -> Grid | None:
    """Return the parts of a figure that so many seeds have; None unless all of them have parts."""
    grid = _grid_of(method, lambda measured: measured.parts.get(name))
    return grid if grid and len(grid.seeds) == seeds else None


def _part_figure(grid: Grid, *, share: bool) -> Figure:
    (drawn,) = draw_means([grid])
    if share:
        return figure(grid, drawn, (0.0, 1.0))
    return exponentials(figure(grid, drawn, (-inf, inf)))  # parts in nats a token, of a ratio or a perplexity


def _first(figures: Iterable[Mapping[str, Any]], key: str) -> Any:
    return next((figure[key] for figure in figures if figure.get(key)), None)


def _fluency(own: Sequence[Measured]) -> Json | None:
    runs = [measured.run for measured in own if measured.run.fluency]
    samples = [(run.fluency["value"], run.fluency["n"]) for run in runs if run.fluency and run.fluency.get("n")]
    if not samples:
        return None
    return {"natural_order": share(samples), "rule": (runs[0].summary["fluency"] or {}).get("rule")}


def _perplexity(method: Method) -> Json | None:
    found = [perplexity for measured in method.measured if (perplexity := measured.run.summary["perplexity"])]
    if not found:
        return None
    after = [one["after"] for one in found if one.get("after") is not None]
    grid = _parts_grid(method, "perplexity", len(after))
    return {
        "before": spread([one.get("before") for one in found]),
        "after": _part_figure(grid, share=False) if grid else spread(after),
        "n_tokens": found[0]["n_tokens"],
        "text": found[0]["text"],
    }


def _curve(own: Sequence[Measured], headline: str) -> list[Json]:
    """Return the evaluations during training in turn: mean tokens, and mean and range of reversed accuracy."""
    seeds = []
    for measured in own:
        # A resumed run may log a step twice; the later line is the one that counts.
        points = {
            line["step"]: (line["tokens"], value)
            for line in measured.run.log
            if line.get("tokens") is not None
            and (value := ((line.get("evaluate") or {}).get("reversed") or {}).get(headline)) is not None
        }
        seeds.append([points[step] for step in sorted(points)])
    turns = [[seed[turn] for seed in seeds if turn < len(seed)] for turn in range(max(map(len, seeds), default=0))]
    return [
        {"tokens": sum(tokens for tokens, _ in turn) / len(turn), **(spread([value for _, value in turn]) or {})}
        for turn in turns
    ]
