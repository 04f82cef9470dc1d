"""`spt report`: finished runs side by side."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spt.cli.options import Json, Quiet, console, emit
from spt.errors import InputError
from spt.progress import configure

Place = Annotated[
    str | None, typer.Option("--output", metavar="DIR", help="Where to write; of one run alone, by default its folder.")
]


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.")],
    output: Place = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Put runs side by side → table, `report.html`, `report.md`, `report.tex`, `report.json`, plots.

    Example: `spt report runs/demo/baseline runs/demo/spt --output runs/demo`
    """
    configure(enabled=not quiet)
    emit(report_on(runs, output, show=not as_json), as_json=as_json)


def report_on(folders: list[Path], output: str | None, *, show: bool) -> Any:
    """Return what `report.json` holds, after the report has been written, and its table printed where `show`."""
    from spt.progress import say
    from spt.report import load_run, table, write_report

    if output is None and len(folders) > 1:
        raise InputError("several runs go into one report: say where with --output DIR, such as --output runs/demo")
    runs = [load_run(folder) for folder in folders]
    place = Path(output) if output is not None else folders[0]
    result = write_report(runs, place)
    if show:
        console().print(table(runs))
    say(f"report: {place / 'report.html'}")
    return result


def print_table(folders: list[Path]) -> None:
    """Print the table of runs."""
    from spt.report import load_run, table

    console().print(table([load_run(folder) for folder in folders]))
