"""Runs → a Markdown table that fits a comment on GitHub.

In: runs and their comparisons. Out: text of at most 60,000 characters. Trade-off: every foreign character that Markdown
could read as markup stands as an HTML entity, which is ugly in the source and always right on the page.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spt.report.figures import (
    TESTED,
    difference,
    halves,
    labels,
    match_rules,
    p_value,
    rate,
    sample_sizes,
    server_notes,
)
from spt.report.guards import guard_cell, guard_rows, throughput
from spt.report.load import Run, known
from spt.report.pairs import Pair

LIMIT = 60_000
"""Characters; a comment on GitHub holds 65,536."""
_BESIDE = 500
"""Characters kept for the line that says what is left out."""
_NAME_WIDTH = 80
_MARKUP = re.compile(r"[^\w\s.,:;()/%+\-'\"=?]|(?<![^\W_])_|_(?![^\W_])", re.ASCII)


def escape(text: str) -> str:
    """Return text in which nothing is markup: punctuation of ASCII that Markdown knows stands as entities."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};" if found[0].isascii() else found[0], text)


def markdown(runs: Sequence[Run], pairs: Sequence[Pair] = ()) -> str:
    """Return the headline table, what its numbers mean, and as many of the other tables as fit."""
    names = [escape(label) for label in labels(runs, _NAME_WIDTH)]
    header = ("run", "forward", "reversed", "gap (p)", "natural order")
    rows = [(name, *_cells(run)) for name, run in zip(names, runs, strict=True)]
    by_half = f"; in brackets {' / '.join(TESTED)}" if any(halves(run, "forward") for run in runs) else ""
    notes = [
        f"Percent [95% interval over facts]{by_half}.",
        *(escape(line) for line in match_rules(runs) + sample_sizes(runs) + server_notes(runs)),
    ]
    text = "\n".join([pipe_table(header, rows), "", *(f"- {note}" for note in notes), ""])
    details = {
        "comparisons": _comparisons(names, pairs),
        "guards": _guards(runs, names),
        "relations": _relations(runs, names),
        "language and speed": _language(runs, names),
    }
    return fill(text, details.items())


def fill(text: str, parts: Iterable[tuple[str, str]]) -> str:
    """Return a text with as many of the (title, part) behind it as fit a comment; the others are named."""
    left = []
    for title, part in parts:
        if part and len(text) + len(part) < LIMIT - _BESIDE:
            text += f"\n{part}\n"
        elif part:
            left.append(title)
    if left:
        text += f"\nToo long for a comment, so only in report.html and report.json: {escape('; '.join(left))[:400]}.\n"
    return text


def _cells(run: Run) -> list[str]:
    cells = []
    for direction in ("forward", "reversed"):
        by_half = halves(run, direction)
        cells.append(rate(run.figure(direction)) + (f" ({by_half})" if by_half else ""))
    gap = difference(run.gap) + (f" ({p_value(run.gap.get('p_value'))})" if run.gap else "")
    return [*(cell.replace("<", "&lt;") for cell in (*cells, gap)), rate(run.fluency)]


def _comparisons(names: Sequence[str], pairs: Sequence[Pair]) -> str:
    rows = [
        (
            names[pair.second], names[pair.first], pair.direction, difference(asdict(pair.gap)),
            p_value(pair.gap.p_value).replace("<", "&lt;"), p_value(pair.p_holm).replace("<", "&lt;"),
        )
        for pair in pairs
    ]  # fmt: skip
    return pipe_table(("run", "minus run", "direction", "difference", "p", "p (Holm)"), rows)


def _guards(runs: Sequence[Run], names: Sequence[str]) -> str:
    found = guard_rows(runs)
    rows = [
        (escape(row.label), name, _guard(figure), str((figure or {}).get("n") or "-"))
        for row in found
        for name, figure in row.cells(names)
    ]
    rules = "\n".join(f"- {escape(row.label)}: {escape(row.rule)}" for row in found if row.rule)
    return "\n\n".join(filter(None, (pipe_table(("guard", "run", "found", "n"), rows), rules)))


def _guard(figure: Mapping[str, Any] | None) -> str:
    cell = guard_cell(figure)
    return cell if known(figure) else escape(cell)


def _relations(runs: Sequence[Run], names: Sequence[str]) -> str:
    rows = [
        (name, escape(relation), rate(run.figure("forward", relation)), rate(run.figure("reversed", relation)))
        for name, run in zip(names, runs, strict=True)
        for relation in run.relations
    ]
    return pipe_table(("run", "relation", "forward", "reversed"), rows)


def _language(runs: Sequence[Run], names: Sequence[str]) -> str:
    rows = []
    for name, run in zip(names, runs, strict=True):
        perplexity = run.summary["perplexity"] or {}
        before, after = (f"{perplexity[key]:.2f}" if perplexity.get(key) else "-" for key in ("before", "after"))
        if perplexity or run.train:
            rows.append((name, before, after, escape(throughput(run)) or "-"))
    return pipe_table(("run", "perplexity before", "after", "training"), rows)


def pipe_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; empty without rows."""
    lines = list(rows)
    numeric = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, numeric, *lines]) if lines else ""
