"""Runs → the table a terminal shows, within 80 columns.

In: runs. Out: a rich Table; the second line of a cell holds the two halves; below it the guards, where there are any.
Trade-off: a name keeps its two ends within two lines of 24 characters; the page shows it whole.
"""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spt.report.figures import (
    TESTED,
    fluency_rules,
    halves,
    labels,
    match_rules,
    percent,
    rate,
    sample_sizes,
    server_notes,
    visible,
)
from spt.report.guards import guard_cell, guard_rows
from spt.report.load import Run

_NAME_WIDTH = 24


def table(runs: Sequence[Run]) -> Group:
    """Return forward and reversed accuracy, their gap, and natural order of each run, in percent, with notes below."""
    shown = frame()
    shown.add_column("run", max_width=_NAME_WIDTH, overflow="fold")
    for name in ("forward", "reversed", "gap", "natural order"):
        shown.add_column(name, no_wrap=True)
    for run, label in zip(runs, labels(runs, 2 * _NAME_WIDTH), strict=True):
        forward, reverse = (cell(rate(run.figure(way)), halves(run, way)) for way in ("forward", "reversed"))
        shown.add_row(Text(label), forward, reverse, percent(run.gap["value"] if run.gap else None), rate(run.fluency))
    return Group(shown, Text(), *_guards(runs), _notes(runs))


def frame() -> Table:
    """Return a table without columns, as all of spt's look."""
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))


def cell(headline: str, by_half: str) -> Text:
    """Return a rate, and on a second line those of the halves."""
    text = Text(headline)
    return text.append(f"\n{by_half}", style="dim") if by_half else text


def _guards(runs: Sequence[Run]) -> list[RenderableType]:
    rows = guard_rows(runs)
    if not rows:
        return []
    shown = frame()
    shown.add_column("guard", max_width=30, overflow="fold")
    if len(runs) > 1:
        shown.add_column("run", max_width=_NAME_WIDTH, overflow="fold")
    shown.add_column("found", overflow="fold")
    shown.add_column("n", justify="right", no_wrap=True)
    names = labels(runs, _NAME_WIDTH)
    for row in rows:
        for number, (name, figure) in enumerate(row.cells(names)):
            label = Text("" if number else visible(row.label))
            between = (Text(name),) if len(runs) > 1 else ()
            n = (figure or {}).get("n")
            shown.add_row(label, *between, Text(visible(guard_cell(figure))), f"{n:,}" if n else "")
    return [shown, Text()]


def _notes(runs: Sequence[Run]) -> Text:
    lines = ["percent [95% interval over facts]"]
    if any(halves(run, "forward") for run in runs):
        lines[0] += f"; second line: {' / '.join(TESTED)}"
    fluency = [f"natural order: free generations {rule}" for rule in fluency_rules(runs)]
    return Text("\n".join([*lines, *match_rules(runs), *fluency, *sample_sizes(runs), *server_notes(runs)]))
