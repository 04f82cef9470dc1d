"""Runs → the files of a report.

In: runs and a folder. Out: `report.json` (the contract for programs), `report.md`, `report.tex`, `report.html`,
`plots/*.png`; each is written atomically. Trade-off: drawings are made anew each time, a second or two, rather than
kept and checked.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spt.artifact import dump_json, write_atomically
from spt.report.figures import labels, visible
from spt.report.latex import latex
from spt.report.load import Run
from spt.report.markdown import markdown
from spt.report.page import page
from spt.report.pairs import Pair, compare_pairs
from spt.report.plots import accuracy_png, curves_png
from spt.report.stored import Summary


def write_report(runs: Sequence[Run], folder: Path) -> dict[str, Any]:
    """Write the report of one or several runs into a folder, and return what `report.json` holds.

    `compare` there holds second minus first of each pair of runs that answered the same questions.
    """
    assert runs, "a report needs a run"
    pairs = compare_pairs(runs)
    names = labels(runs, 200)
    result = {"runs": [_result(run) for run in runs], "compare": [_comparison(names, pair) for pair in pairs]}
    # A lone surrogate, which a file of JSON can bring in, goes out as it came: as the escape \udXXX.
    write_atomically(folder / "report.json", f"{dump_json(result)}\n".encode(errors="backslashreplace"))
    write_atomically(folder / "report.md", visible(markdown(runs, pairs)))
    write_atomically(folder / "report.tex", latex(runs))
    write_atomically(folder / "report.html", visible(page(runs, pairs, folder)))
    plots = {"accuracy.png": accuracy_png(runs), "curves.png": curves_png(runs)}
    for name, data in plots.items():
        if data is None:
            (folder / "plots" / name).unlink(missing_ok=True)  # of an earlier report over other runs
        else:
            write_atomically(folder / "plots" / name, data)
    return result


def _result(run: Run) -> dict[str, Any]:
    summary = {name: run.summary[name] for name in Summary.model_fields}
    trained = {name: run.train.get(name) for name in ("steps", "target_tokens")}
    return summary | trained | {"seconds": run.seconds}


def _comparison(names: Sequence[str], pair: Pair) -> dict[str, Any]:
    row = asdict(pair) | {"first": names[pair.first], "second": names[pair.second]}
    gap: dict[str, Any] = row.pop("gap")
    return row | {"difference": gap.pop("value")} | gap
