"""Runs → the table a terminal shows, within 80 columns.

In: runs. Out: a rich Table; the second line of a cell holds the two halves. Trade-off: a name keeps its two ends within
two lines of 24 characters; the page shows it whole.
"""

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from spt.report.figures import TESTED, fluency_rules, halves, labels, match_rules, percent, rate, sample_sizes
from spt.report.load import Run

_NAME_WIDTH = 24


def table(runs: Sequence[Run]) -> Group:
    """Return forward and reversed accuracy, their gap, and natural order of each run, in percent, with notes below."""
    shown = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    shown.add_column("run", max_width=_NAME_WIDTH, overflow="fold")
    for name in ("forward", "reversed", "gap", "natural order"):
        shown.add_column(name, no_wrap=True)
    for run, label in zip(runs, labels(runs, 2 * _NAME_WIDTH), strict=True):
        forward, reverse = (_cell(rate(run.figure(way)), halves(run, way)) for way in ("forward", "reversed"))
        shown.add_row(Text(label), forward, reverse, percent(run.gap["value"] if run.gap else None), rate(run.fluency))
    return Group(shown, Text(), _notes(runs))


def _cell(headline: str, by_half: str) -> Text:
    text = Text(headline)
    return text.append(f"\n{by_half}", style="dim") if by_half else text


def _notes(runs: Sequence[Run]) -> Text:
    lines = ["percent [95% interval over facts]"]
    if any(halves(run, "forward") for run in runs):
        lines[0] += f"; second line: {' / '.join(TESTED)}"
    return Text("\n".join([*lines, *match_rules(runs), *fluency_rules(runs), *sample_sizes(runs)]))
