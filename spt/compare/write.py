"""A comparison's folder → the files of its report.

In: `cells.json` and what is finished. Out: `report.json` (the contract for programs), `report.md`, `report.tex`,
`report.html`, `plots/*.png`; each is written atomically. Trade-off: everything is computed anew from the cells each
time, seconds, rather than kept and checked.
"""

import re
from pathlib import Path

from spt.artifact import dump_json, write_atomically
from spt.compare.columns import Json
from spt.compare.gather import Comparison, gather
from spt.compare.latex import latex
from spt.compare.markdown import markdown
from spt.compare.measure import measure_experiment
from spt.compare.page import page
from spt.compare.plots import cost, draw_png, scatter
from spt.report.figures import visible


def write_comparison(folder: Path) -> Json:
    """Write the report of a comparison as far as it has come, and return what `report.json` holds.

    Raises MissingError where there is no comparison, DamagedError, QuestionError.
    """
    result = result_of(gather(folder), folder)
    # A lone surrogate, which a file of JSON can bring in, goes out as it came: as the escape \\udXXX.
    write_atomically(folder / "report.json", f"{dump_json(result)}\n".encode(errors="backslashreplace"))
    write_atomically(folder / "report.md", visible(markdown(result)))
    write_atomically(folder / "report.tex", latex(result))
    write_atomically(folder / "report.html", visible(page(result, folder)))
    _write_plots(result, folder / "plots")
    return result


def result_of(comparison: Comparison, place: Path) -> Json:
    """Return what `report.json` holds; folders in it are relative to `place`."""
    experiments = [measure_experiment(one, comparison.baseline, place) for one in comparison.experiments]
    return {
        "name": comparison.name,
        "baseline": comparison.baseline,
        "cells": sum(len(method.cells) for one in comparison.experiments for method in one.methods),
        "experiments": experiments,
        "absent": [
            {key: getattr(cell, key) for key in ("experiment", "method", "seed", "state", "reason")}
            for cell in comparison.absent
        ],
    }


def _write_plots(result: Json, folder: Path) -> None:
    for number, experiment in enumerate(result["experiments"]):
        named = re.sub(r"[^\w.-]+", "-", experiment["name"])[:60] or str(number)
        for draw in (scatter, cost):
            path, data = folder / f"{named}-{draw.__name__}.png", draw_png(draw, experiment)
            if data is None:
                path.unlink(missing_ok=True)  # of an earlier report
            else:
                write_atomically(path, data)
