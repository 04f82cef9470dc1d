"""`spt compare`: a grid of methods, seeds and experiments → one report."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from spt.cli.options import DryRun, Force, Json, Limit, Output, Quiet, Set, console, emit, with_flags
from spt.compare.config import Comparison, read_comparison
from spt.errors import InputError
from spt.progress import configure, say

ComparisonFile = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The comparison: a YAML file (docs/comparing.md).", show_default=False)
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="Cells that run at a time (default: the file's `jobs`)."),
]
ReportOnly = Annotated[
    bool, typer.Option("--report", help="Write the report of the cells that are finished; run none.")
]


def compare(
    config: ComparisonFile,
    overrides: Set = None,
    jobs: Jobs = None,
    output: Output = None,
    limit: Limit = None,
    report: ReportOnly = False,
    dry_run: DryRun = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run every method with every seed on every experiment → one report; running again does what is left.

    Writes `OUTPUT/report.html`, `report.md`, `report.tex` (a table for a paper), `report.json`, plots; each cell is a
    run in `OUTPUT/cells/EXPERIMENT/METHOD/seed-N`.

    `--set` takes a key of the comparison (`seeds=[0]`), or one of its experiments' (`train.epochs=2`), for every cell.

    Example: `spt compare configs/compare/tiny.yaml --jobs 2 --set seeds=[0]`
    """
    configure(enabled=not quiet)
    if report and dry_run:
        raise InputError("--report writes a report, and --dry-run nothing; leave one of them out")
    flags = {"jobs": jobs, "output": output, "data.limit": limit}
    comparison, for_cells = read_comparison(config, with_flags(overrides, flags))
    if report:
        _report(Path(comparison.output), as_json=as_json)
        return
    if dry_run:
        from spt.compare.plan import plan_comparison

        cells = plan_comparison(comparison, for_cells)
        emit({"name": comparison.name, "output": comparison.output, "cells": cells}, as_json=as_json)
        if not as_json:
            _print_plan(comparison, cells)
        return
    from spt.compare.run import check_failures, run_comparison

    cells_run = run_comparison(comparison, for_cells, force=force)
    if any(cell.state == "finished" for cell in cells_run.cells):
        _report(Path(comparison.output), as_json=as_json)
    check_failures(cells_run)


def _report(folder: Path, *, as_json: bool) -> None:
    from spt.compare.terminal import comparison_table
    from spt.compare.write import write_comparison

    result = write_comparison(folder)
    if not as_json:
        console().print(comparison_table(result))
    emit(result, as_json=as_json)
    say(f"report: {folder / 'report.html'}")


def _print_plan(comparison: Comparison, cells: list[dict[str, Any]]) -> None:
    """Print a row an experiment and method, and what is in the way of stale cells, once a reason."""
    table = Table(box=None, pad_edge=False)
    for name in ("experiment", "method", "budget", "steps", "tokens", "finished"):
        table.add_column(name, justify="left" if name in ("experiment", "method") else "right", overflow="fold")
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        rows.setdefault((cell["experiment"], cell["method"]), []).append(cell)
    for names, same in rows.items():
        budget = f"{same[0]['budget']['value']:,} {same[0]['budget']['kind']}"
        numbers = f"{same[0]['steps']:,}", f"{same[0]['tokens']:,}"
        table.add_row(*names, budget, *numbers, f"{_finished(same)} of {len(same)}")
    seeds = ", ".join(map(str, comparison.seeds))
    lines = [f"{len(cells)} cells (seeds {seeds}), {_finished(cells)} finished → {comparison.output}"]
    if not all(cell["segmented"] for cell in cells):
        lines.append("steps and tokens before segmenting: what augment stores is not in them")
    stale = [cell for cell in cells if cell["state"] == "stale"]
    for reason in dict.fromkeys(cell["reason"] for cell in stale):
        lines += [*(cell["folder"] for cell in stale if cell["reason"] == reason), reason]
    console().print(table)
    console().print("\n".join(lines), markup=False, soft_wrap=True)


def _finished(cells: list[dict[str, Any]]) -> int:
    return sum(cell["state"] == "finished" for cell in cells)
