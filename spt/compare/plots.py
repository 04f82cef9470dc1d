"""The methods of an experiment → two drawings: reversed against forward accuracy, and what reversed accuracy costs.

In: an experiment as `report.json` holds it. Out: PNG bytes, and SVG text for the page. Each method has one colour,
marker and dash in both. Trade-off: labels stand in a column of their own beside the drawing, each with a line to
what it names: that takes a third of the width, and no two can overlap.
"""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from spt.compare.columns import Json, compact
from spt.report.drawing import INK, STYLE, png, svg
from spt.report.figures import shorten

# Okabe and Ito's palette without what is too pale on white, and Tol's purple; twenty methods differ in mark and dash.
_COLOURS = {
    "#0072b2": "var(--m-blue)", "#d55e00": "var(--m-red)", "#009e73": "var(--m-green)", "#aa4499": "var(--m-purple)",
    INK: "currentColor",
}  # fmt: skip
_FAINT = "#5b6570"
_MARKERS, _DASHES = "os^D", ("-", "--", "-.", ":")
_LINE = 0.17
"""Inches that a label needs above the next."""
_NAME_WIDTH = 24


def scatter(experiment: Json) -> Figure | None:
    """Return a point a method, with its intervals; None where none has both accuracies."""
    shown = [method for method in experiment["methods"] if method["forward"] and method["reversed"]]
    if not shown:
        return None
    figure, axes = _frame(len(shown), _axis("forward", experiment), _axis("reversed", experiment))
    ends = []
    for number, method in enumerate(shown):
        style = _style(experiment, method)
        x, y = (_percents(method[way]) for way in ("forward", "reversed"))
        axes.plot([x[1], x[2]], [y[0]] * 2, color=style["color"], linewidth=1.1)
        axes.plot([x[0]] * 2, [y[1], y[2]], color=style["color"], linewidth=1.1)
        axes.plot(x[0], y[0], linestyle="", markersize=6, markeredgecolor="#fefefe", zorder=3 + number, **style)
        ends.append((x[0], y[0]))
    axes.set(xlim=(-3, 103), ylim=(-3, 103))
    axes.axline((0, 0), slope=1, color=_FAINT, linewidth=0.6, linestyle=(0, (2, 3)), zorder=0)
    _label(axes, experiment, shown, ends)
    return figure


def cost(experiment: Json) -> Figure | None:
    """Return reversed accuracy during training by tokens seen, with the range over seeds; None without such lines."""
    shown = [method for method in experiment["methods"] if method["curve"]]
    if not shown:
        return None
    figure, axes = _frame(len(shown), "tokens seen", _axis("reversed", experiment))
    ends = []
    for number, method in enumerate(shown):
        style = _style(experiment, method)
        dash = _DASHES[_place(experiment, method) // len(_COLOURS) % len(_DASHES)]
        tokens = np.array([point["tokens"] for point in method["curve"]])
        middle, low, high = (
            100 * np.array([point[key] for point in method["curve"]]) for key in ("value", "low", "high")
        )
        axes.fill_between(tokens, low, high, color=style["color"], alpha=0.14, linewidth=0)
        axes.plot(tokens, middle, markersize=3.5, linewidth=1.3, linestyle=dash, zorder=3 + number, **style)
        ends.append((float(tokens[-1]), float(middle[-1])))
    axes.set(xlim=(0, max(x for x, _ in ends) * 1.02), ylim=(-3, 103))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    axes.locator_params(axis="x", nbins=6)
    _label(axes, experiment, shown, ends)
    return figure


def draw_png(draw: Callable[[Json], Figure | None], experiment: Json) -> bytes | None:
    """Return a drawing as PNG, or None where there is nothing to draw."""
    with mpl.rc_context(STYLE):
        figure = draw(experiment)
        return png(figure) if figure else None


def draw_svg(draw: Callable[[Json], Figure | None], experiment: Json, salt: str) -> str | None:
    """Return a drawing as an element of the page, or None; `salt` keeps the ids of several on a page apart."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": salt}):
        figure = draw(experiment)
        return svg(figure, {**_COLOURS, _FAINT: "var(--faint)"}) if figure else None


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near the wanted ones, in the same order, at least `gap` apart and from `low` to `high`.

    There must be room for all.
    """
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    places = np.array([wanted[number] for number in order], dtype=np.float64)
    steps = gap * np.arange(len(places))
    # Up as far as those below ask for, then down as far as the upper end does.
    places = np.maximum.accumulate(np.maximum(places, low) - steps) + steps
    places = np.minimum(places, high - steps[::-1])
    found = [0.0] * len(places)
    for number, place in zip(order, places.tolist(), strict=True):
        found[number] = place
    return found


def _frame(labels: int, x: str, y: str) -> tuple[Figure, Any]:
    height = max(3.4, _LINE * labels + 0.6)
    figure = Figure(figsize=(6.8, height + 0.6))
    axes = figure.add_axes((0.09, 0.5 / (height + 0.6), 0.55, height / (height + 0.6)))
    axes.set(xlabel=x, ylabel=y)
    return figure, axes


def _label(axes: Any, experiment: Json, shown: Sequence[Json], ends: Sequence[tuple[float, float]]) -> None:
    """Write the names beside the axes, and lead a line from each to its point."""
    to_axes = axes.transData + axes.transAxes.inverted()
    points = to_axes.transform(np.array(ends))
    gap = _LINE / (axes.figure.get_figheight() * axes.get_position().height)
    places = spread_apart(points[:, 1].tolist(), gap, 0.01, 0.99)
    for method, point, place in zip(shown, points, places, strict=True):
        axes.plot(
            [point[0], 1.02, 1.05], [point[1], place, place], transform=axes.transAxes, clip_on=False, color=_FAINT,
            linewidth=0.45, alpha=0.7, zorder=1,
        )  # fmt: skip
        style = _style(experiment, method)
        axes.plot(1.07, place, transform=axes.transAxes, clip_on=False, linestyle="", markersize=5, **style)
        name = shorten(method["name"], _NAME_WIDTH)
        axes.text(1.095, place, name, transform=axes.transAxes, va="center_baseline", fontsize=8.5)


def _style(experiment: Json, method: Json) -> dict[str, Any]:
    place, colours = _place(experiment, method), list(_COLOURS)
    return {"color": colours[place % len(colours)], "marker": _MARKERS[place // len(colours) % len(_MARKERS)]}


def _place(experiment: Json, method: Json) -> int:
    return next(number for number, one in enumerate(experiment["methods"]) if one["name"] == method["name"])


def _percents(figure: Json) -> list[float]:
    return [100 * figure[name] for name in ("value", "low", "high")]


def _axis(direction: str, experiment: Json) -> str:
    return f"{direction} ({shorten(experiment['headline'], 20)}, percent)"
