"""A comparison → Markdown that fits a comment on GitHub.

In: what `report.json` holds. Out: text that fits one. Trade-off: what does not fit is left out from the end, and named.
"""

from collections.abc import Iterator, Sequence

from spt.compare.columns import (
    ACCURACY,
    COST,
    Column,
    Json,
    beside,
    columns_of,
    mark,
    notes_of,
    relation_columns,
)
from spt.report.figures import difference, p_value, shorten
from spt.report.markdown import escape, fill, pipe_table

_NAME_WIDTH = 80


def markdown(result: Json) -> str:
    """Return the tables of each experiment, the accuracies of all of them first."""
    return fill(f"**Comparison {escape(_short(result['name']))}**\n", _parts(result))


def _parts(result: Json) -> Iterator[tuple[str, str]]:
    for experiment in result["experiments"]:
        shown = [column for column in columns_of(experiment) if column in ACCURACY]
        yield f"accuracies on {_short(experiment['name'])}", _section(experiment, shown)
    yield "cells without figures", _absent(result)
    for experiment in result["experiments"]:
        name = _short(experiment["name"])
        shown = [column for column in columns_of(experiment) if column in (*beside(experiment), *COST)]
        yield f"guards and cost on {name}", _titled(experiment, "guards and cost", _table(experiment, shown))
        yield f"halves and relations on {name}", _titled(experiment, "halves and relations", _relations(experiment))
        against = [row for row in experiment["pairs"] if row["first"] == result["baseline"]]
        yield f"differences from the baseline on {name}", _titled(experiment, "differences", _pairs(against))
    for experiment in result["experiments"]:
        others = [row for row in experiment["pairs"] if row["first"] != result["baseline"]]
        title = f"differences of other methods on {_short(experiment['name'])}"
        yield title, _titled(experiment, "differences of other methods", _pairs(others))


def _section(experiment: Json, columns: Sequence[Column]) -> str:
    notes = "\n".join(f"- {escape(note)}" for note in notes_of(experiment))
    return _titled(experiment, "", f"{_table(experiment, columns)}\n\n{notes}")


def _titled(experiment: Json, title: str, text: str) -> str:
    name = escape(_short(experiment["name"]))
    return f"**{name}{', ' * bool(title)}{title}**\n\n{text}" if text else ""


def _table(experiment: Json, columns: Sequence[Column]) -> str:
    rows = [
        (
            escape(_short(method["name"])),
            *(_safe(column.text(method)) + escape(mark(column, method)) for column in columns),
            str(len(method["seeds"])),
        )
        for method in experiment["methods"]
    ]
    titles = (escape(_short(column.title)) for column in columns)
    return pipe_table(("method", *titles, "seeds"), rows) if columns else ""


def _relations(experiment: Json) -> str:
    relations = relation_columns(experiment)
    header = [f"{escape(_short(name))}, {column.title}" for name, columns in relations for column in columns]
    shown = [column for _, columns in relations for column in columns]
    rows = [
        (escape(_short(method["name"])), *(_safe(column.text(method)) for column in shown))
        for method in experiment["methods"]
    ]
    return pipe_table(("method", *header), rows) if relations else ""


def _pairs(rows: Sequence[Json]) -> str:
    cells = [
        (
            escape(_short(row["second"])), escape(_short(row["first"])), row["direction"], difference(row),
            _safe(p_value(row["p_value"])), _safe(p_value(row["p_holm"])),
        )
        for row in rows
    ]  # fmt: skip
    return pipe_table(("method", "minus method", "direction", "difference", "p", "p (Holm)"), cells)


def _absent(result: Json) -> str:
    rows = [
        (*(escape(_short(str(cell[key]))) for key in ("experiment", "method")), str(cell["seed"]), cell["state"],
         escape(shorten(cell["reason"] or "", 200)))
        for cell in result["absent"]
    ]  # fmt: skip
    table = pipe_table(("experiment", "method", "seed", "state", "reason"), rows)
    return f"**Cells without figures: {len(rows)} of {result['cells']}**\n\n{table}" if rows else ""


def _safe(cell: str) -> str:
    return cell.replace("<", "&lt;")


def _short(name: str) -> str:
    return shorten(name, _NAME_WIDTH)
