"""Runs → a Markdown table that fits a comment on GitHub.

In: runs. Out: text of at most 60,000 characters. Trade-off: every foreign character that Markdown could read as markup
stands as an HTML entity, which is ugly in the source and always right on the page.
"""

import re
from collections.abc import Iterable, Sequence

from spt.report.figures import TESTED, difference, halves, labels, match_rules, p_value, rate, sample_sizes
from spt.report.load import Run

LIMIT = 60_000
"""Characters; a comment on GitHub holds 65,536."""
_NAME_WIDTH = 80
_MARKUP = re.compile(r"[^\w\s.,:;()/%+-]|(?<![^\W_])_|_(?![^\W_])", re.ASCII)


def escape(text: str) -> str:
    """Return text in which nothing is markup: punctuation of ASCII that Markdown knows stands as entities."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};" if found[0].isascii() else found[0], text)


def markdown(runs: Sequence[Run]) -> str:
    """Return the headline table, what its numbers mean, and the halves and relations where they fit."""
    names = [escape(label) for label in labels(runs, _NAME_WIDTH)]
    header = ("run", "forward", "reversed", "gap (p)", "natural order")
    rows = [(name, *_cells(run)) for name, run in zip(names, runs, strict=True)]
    by_half = f"; in brackets {' / '.join(TESTED)}" if any(halves(run, "forward") for run in runs) else ""
    notes = [
        f"Percent [95% interval over facts]{by_half}.",
        *(escape(line) for line in match_rules(runs) + sample_sizes(runs)),
    ]
    head = "\n".join([_table(header, rows), "", *(f"- {note}" for note in notes), ""])
    details = _relations(runs, names)
    if len(head) + len(details) > LIMIT:
        details = "\nThe table of relations is too long for a comment: see report.html or report.json.\n"
    return head + details


def _cells(run: Run) -> list[str]:
    cells = []
    for direction in ("forward", "reversed"):
        by_half = halves(run, direction)
        cells.append(rate(run.figure(direction)) + (f" ({by_half})" if by_half else ""))
    gap = difference(run.gap) + (f" ({p_value(run.gap['p_value'])})" if run.gap else "")
    return [*(cell.replace("<", "&lt;") for cell in (*cells, gap)), rate(run.fluency)]


def _relations(runs: Sequence[Run], names: Sequence[str]) -> str:
    rows = [
        (name, escape(relation), rate(run.figure("forward", relation)), rate(run.figure("reversed", relation)))
        for name, run in zip(names, runs, strict=True)
        for relation in run.relations
    ]
    return f"\n{_table(('run', 'relation', 'forward', 'reversed'), rows)}\n" if rows else ""


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    numeric = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, numeric, *rows])
