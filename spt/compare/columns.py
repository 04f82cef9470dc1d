"""What stands in a comparison's tables: the columns of an experiment, and its figures as short text.

In: an experiment as `report.json` holds it. Out: titles and cells, the same for the page, Markdown, LaTeX and the
terminal. Trade-off: a column that no method has is left out; `notes_of` says why a guard is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spt.report.figures import ABSENT, amount, asked, bounds, has_interval

Json = dict[str, Any]
MARK = "*"
"""Behind the highest reversed accuracy and those not significantly below it."""
MARKED = f"{MARK} the highest reversed accuracy, and those not significantly below it (p, Holm >= 0.05)"
_MATCHED = {
    "epochs": "data-matched, {:,} passes over the corpus",
    "tokens": "compute-matched, as many steps as are expected to see {:,} tokens",
    "steps": "{:,} steps",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of every method: where it stands in a method's JSON, and `kind`, how it is written."""

    title: str
    path: tuple[str, ...]
    kind: str = "figure"
    rule: str = ""

    def figure(self, method: Json) -> Json | None:
        """Return the method's figure, or None where it has none."""
        found: Any = method
        for key in self.path:
            found = (found or {}).get(key)
        return found if found and found.get("value") is not None else None

    def cell(self, method: Json, separator: str = "-") -> tuple[str, str]:
        """Return the value and its interval (for tokens and time: its range) as text, empty where there is none."""
        figure = self.figure(method)
        if figure is None:
            return ABSENT, ""
        write = _WRITERS.get(self.kind)
        if write is None:
            between = ", " if self.kind == "difference" and separator == "-" else separator
            return amount(figure), bounds(figure, between) if has_interval(figure) else ""
        low, high = (None if figure.get(end) is None else write(figure[end]) for end in ("low", "high"))
        return write(figure["value"]), _range(low, high)

    def text(self, method: Json) -> str:
        """Return the cell on one line, such as `97.5 [95-99]`."""
        value, ends = self.cell(method)
        return f"{value} [{ends}]" if ends else value


def _range(low: str | None, high: str | None) -> str:
    if low is None or high is None or low == high:
        return ""
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(f' {unit}') else low} to {high}"


def compact(value: float) -> str:
    """Return a count with three digits that count, such as `1.23M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            return f"{value / size:.3g}{letter}" if value < size * 999.5 else f"{value / size:.0f}{letter}"
    return f"{value:.0f}"


def _perplexity(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def _time(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


_WRITERS = {"tokens": compact, "seconds": _time, "perplexity": _perplexity}

ACCURACY = (
    Column("forward", ("forward",)),
    Column("reversed", ("reversed",)),
    Column("gap", ("gap",), "difference"),
    Column("natural order", ("fluency", "natural_order")),
)
_LANGUAGE = (
    Column("perplexity before", ("perplexity", "before"), "perplexity"),
    Column("perplexity after", ("perplexity", "after"), "perplexity"),
)
COST = (
    Column("tokens seen", ("tokens",), "tokens"),
    Column("training time", ("seconds",), "seconds"),
)


def columns_of(experiment: Json) -> list[Column]:
    """Return the columns that any method has, in the order of the table."""
    return [*ACCURACY[:3], *_present(experiment, (*ACCURACY[3:], *beside(experiment), *COST))]


def beside(experiment: Json) -> list[Column]:
    """Return the columns of guards and perplexities that any method has."""
    guards = [
        Column(named["label"] or name.replace("_", " "), ("guards", name), rule=named["rule"] or "")
        for name, named in guards_of(experiment).items()
    ]
    return _present(experiment, (*guards, *_LANGUAGE))


def _present(experiment: Json, columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if any(column.figure(method) for method in experiment["methods"])]


def mark(column: Column, method: Json) -> str:
    """Return what stands behind a cell: the mark of the best reversed accuracies, or nothing."""
    return MARK if column.path == ("reversed",) and method["best"] else ""


def relation_columns(experiment: Json) -> list[tuple[str, list[Column]]]:
    """Return the forward and reversed columns of each half and relation."""
    names = dict.fromkeys(name for method in experiment["methods"] for name in method["relations"])
    return [
        (name, [Column(direction, ("relations", name, direction)) for direction in ("forward", "reversed")])
        for name in names
    ]


def guards_of(experiment: Json) -> dict[str, Json]:
    """Return each guard by name, as the first method has it that measured it, or else the first that has it."""
    found: dict[str, Json] = {}
    for method in experiment["methods"]:
        for name, guard in method["guards"].items():
            if name not in found or (found[name]["value"] is None and guard["value"] is not None):
                found[name] = guard
    return found


def rules_of(experiment: Json) -> list[str]:
    """Return what a reader has to know about an experiment's accuracies and cost, a line each."""
    lines = [_budget(budget, alone=len(experiment["budgets"]) == 1) for budget in experiment["budgets"]]
    if experiment["headline"]:
        lines.append(f"{experiment['headline']}: {experiment['match_rule']}")
        first = next(method for method in experiment["methods"] if method["seeds"])
        lines.append(f"asked: {'; '.join(asked(first))}")
        several = any(len(method["seeds"]) > 1 for method in experiment["methods"])
        ranges = "; tokens and time: mean [range over seeds]" if several else ""
        lines.append(f"percent [95% interval over {_over(experiment)}]{ranges}")
    fluency = [method["fluency"] for method in experiment["methods"] if method["fluency"]]
    lines += [f"natural order: free generations {rule}" for rule in dict.fromkeys(one["rule"] for one in fluency)]
    if any(method["best"] for method in experiment["methods"]):
        lines.append(MARKED)
    return lines


def notes_of(experiment: Json) -> list[str]:
    """Return `rules_of`, and a line for each guard that no method was measured by, with the reason."""
    return rules_of(experiment) + [
        f"{guard['label'] or name}: not measured{': ' + guard['reason'] if guard['reason'] else ''}"
        for name, guard in guards_of(experiment).items()
        if guard["value"] is None
    ]


def _budget(budget: Json, *, alone: bool) -> str:
    text = _MATCHED.get(budget["kind"], budget["kind"] + " {:,}").format(budget["value"])
    return f"budget: {text}" if alone else f"budget of {', '.join(budget['methods'])}: {text}"


def _over(experiment: Json) -> str:
    counts = {len(method["seeds"]) for method in experiment["methods"] if method["seeds"]}
    if counts == {1}:
        return "facts alone, since there is one seed"
    if 1 in counts:
        return "seeds and facts; over facts alone for a method with one seed"
    return "seeds and facts"
