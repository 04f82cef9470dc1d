"""Runs → drawings: bars of the accuracies, curves of accuracy and loss by step.

In: runs. Out: PNG bytes, and for the page SVG text. Trade-off: colour means direction, never run, so each run has its
own panel.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spt.report.drawing import INK, STYLE, png, svg
from spt.report.figures import labels, shorten
from spt.report.load import Run

# Okabe and Ito's palette: told apart under every common colour blindness.
COLOURS = {"forward": "#0072b2", "reversed": "#d55e00", "natural order": "#009e73"}
_VARIABLES = {COLOURS["forward"]: "var(--forward)", COLOURS["reversed"]: "var(--reversed)"}
_POINTS = 300
_COLUMNS = 4


def accuracy_png(runs: Sequence[Run]) -> bytes:
    """Return bars of forward, reversed and natural order for each run, with 95% intervals and floors."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 1.1 + 0.62 * len(runs)), layout="constrained")
        axes = figure.add_subplot()
        places = np.arange(len(runs))
        for offset, (name, colour) in zip((-0.26, 0.0, 0.26), COLOURS.items(), strict=True):
            found = [run.fluency if name == "natural order" else run.figure(name) for run in runs]
            for place, rate in zip(places, found, strict=True):
                if rate:
                    _draw_bar(axes, place + offset, rate, colour)
            axes.barh(0, 0, color=colour, label=name)
        axes.bar(0, 0, color="none", edgecolor=INK, linestyle=":", label="floor")
        axes.set(xlim=(0, 100.5), xlabel="percent", ylim=(len(runs) - 0.4, -0.6))
        axes.set_yticks(places, labels(runs, 28))
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper center", ncols=4)
        return png(figure)


def _draw_bar(axes: Any, place: float, rate: Mapping[str, Any], colour: str) -> None:
    value, low, high = (100 * rate[name] for name in ("value", "low", "high"))
    axes.barh(place, value, height=0.22, color=colour)
    axes.plot([low, high], [place, place], color=INK, linewidth=1.2)
    if rate.get("floor") is not None:
        axes.plot([100 * rate["floor"]] * 2, [place - 0.13, place + 0.13], color=INK, linestyle=":", linewidth=1.4)


def curves_png(runs: Sequence[Run]) -> bytes | None:
    """Return the curves of each run that was trained, side by side, or None where none was."""
    trained = [(run, label) for run, label in zip(runs, labels(runs, 28), strict=True) if run.log]
    if not trained:
        return None
    columns = min(len(trained), _COLUMNS)
    blocks = -(-len(trained) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.6 + 3.2 * columns, 0.4 + 3.8 * blocks), layout="constrained")
        grid = figure.subplots(2 * blocks, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for index, (run, label) in enumerate(trained):
            block, column = divmod(index, columns)
            _draw_curves(grid[2 * block][column], grid[2 * block + 1][column], run)
            grid[2 * block][column].set_title(label)
        handles, names = grid[0][0].get_legend_handles_labels()
        if names:
            figure.legend(handles, names, loc="outside upper center", ncols=2)
        return png(figure)


def curves_svg(run: Run, salt: str) -> str | None:
    """Return one run's curves as an SVG element for the page, or None where it was not trained.

    `salt` keeps the ids of several drawings on a page apart.
    """
    if not run.log:
        return None
    with mpl.rc_context(STYLE | {"svg.hashsalt": salt}):
        figure = Figure(figsize=(3.2, 3.4), layout="constrained")
        top, bottom = figure.subplots(2, 1)
        _draw_curves(top, bottom, run)
        return svg(figure, _VARIABLES)


def _draw_curves(top: Any, bottom: Any, run: Run) -> None:
    for direction in ("forward", "reversed"):
        points = _by_step(
            run.log, lambda line, way=direction: ((line.get("evaluate") or {}).get(way) or {}).get(run.headline)
        )
        if len(points):
            # Dashes too: the two curves often lie on each other, and a printout may be grey.
            top.plot(
                points[:, 0], 100 * points[:, 1], color=COLOURS[direction], label=direction, marker="o", markersize=3,
                linestyle="-" if direction == "forward" else "--",
            )  # fmt: skip
    top.set(ylim=(-4, 104), yticks=(0, 25, 50, 75, 100), ylabel=f"{shorten(run.headline, 20)}, percent")
    losses = _by_step(run.log, lambda line: line.get("loss"))
    each = -(-len(losses) // _POINTS)
    if len(losses):
        means = np.array([losses[start : start + each].mean(axis=0) for start in range(0, len(losses), each)])
        bottom.plot(means[:, 0], means[:, 1], color=INK, linewidth=1)
    bottom.set(xlabel="step", ylabel="loss" if each < 2 else f"loss, mean of {each} lines")
    for axes in (top, bottom):
        axes.set_visible(True)
        axes.set_xlim(0, max(line["step"] for line in run.log) * 1.02)
        axes.locator_params(axis="x", nbins=5, integer=True)
    if not top.lines:
        top.text(0.5, 0.5, "not evaluated while training", ha="center", transform=top.transAxes)


def _by_step(log: Sequence[Mapping[str, Any]], value_of: Any) -> NDArray[np.float64]:
    # A resumed run may log a step twice; the later line is the one that counts.
    values = {line["step"]: value_of(line) for line in log if value_of(line) is not None}
    return np.array(sorted(values.items()), dtype=float).reshape(-1, 2)
