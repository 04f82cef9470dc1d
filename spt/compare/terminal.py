"""A comparison → the table a terminal shows, within 80 columns.

In: what `report.json` holds. Out: rich tables. Trade-off: guards and cost stand without intervals and under their short
names; the page shows both.
"""

from collections import Counter

from rich.console import Group, RenderableType
from rich.text import Text

from spt.compare.columns import ACCURACY, COST, Column, Json, beside, columns_of, mark, notes_of
from spt.report.figures import ABSENT, TESTED, percent, shorten, visible
from spt.report.terminal import cell, frame

_NAME_WIDTH = 24
_REASON_WIDTH = 200


def comparison_table(result: Json) -> Group:
    """Return the accuracies of each experiment with what they cost, and which cells have no figures, and why."""
    parts: list[RenderableType] = []
    for experiment in result["experiments"]:
        parts += [Text(visible(shorten(experiment["name"], 80)), style="bold"), _accuracies(experiment), Text()]
        parts += [
            _costs(experiment),
            Text(),
            Text(visible("\n".join(["n: seeds", *_shortened(experiment), *notes_of(experiment)]))),
            Text(),
        ]
    return Group(*parts, *_absent(result))


def _accuracies(experiment: Json) -> RenderableType:
    shown = frame()
    shown.add_column("method", max_width=_NAME_WIDTH, overflow="fold")
    columns = [column for column in columns_of(experiment) if column in ACCURACY]
    for column in columns:
        shown.add_column("\n".join(column.title.split()), no_wrap=True)
    shown.add_column("n", justify="right")
    for method in experiment["methods"]:
        texts = [
            Text(column.cell(method)[0])
            if column.title == "gap"
            else cell(column.text(method) + mark(column, method), _halves(method, column.title))
            for column in columns
        ]
        shown.add_row(Text(shorten(method["name"], 2 * _NAME_WIDTH)), *texts, str(len(method["seeds"])))
    return shown


def _costs(experiment: Json) -> RenderableType:
    shown = frame()
    shown.add_column("method", max_width=_NAME_WIDTH, overflow="fold")
    columns = _narrow(experiment)
    for column in columns:
        title = column.path[1] if column.path[0] == "guards" else column.title
        shown.add_column(Text(visible("\n".join(title.replace("_", " ").split()))), justify="right", overflow="fold")
    for method in experiment["methods"]:
        texts = (column.cell(method)[0] for column in columns)
        shown.add_row(Text(shorten(method["name"], 2 * _NAME_WIDTH)), *map(Text, texts))
    return shown


def _shortened(experiment: Json) -> list[str]:
    """Return what the short names above the columns of `_costs` stand for; the rules stand on the page."""
    guards = {c.path[1].replace("_", " "): c.title for c in _narrow(experiment) if c.path[0] == "guards"}
    lines = [f"{short}: {title}" for short, title in guards.items() if short != title]
    neutral = any(column.kind == "perplexity" for column in _narrow(experiment))
    return lines + (["perplexity after: of neutral text, after training"] if neutral else [])


def _narrow(experiment: Json) -> list[Column]:
    """Return the columns of guards and cost; of perplexities that after training, where retention does not say more."""
    columns = [column for column in columns_of(experiment) if column in (*beside(experiment), *COST)]
    kept = {"after"} if not any(column.path[1:] == ("retention",) for column in columns) else set()
    return [column for column in columns if column.kind != "perplexity" or column.path[1] in kept]


def _halves(method: Json, direction: str) -> str:
    if not set(TESTED) & method["relations"].keys() or direction not in ("forward", "reversed"):
        return ""
    figures = [(method["relations"].get(half) or {}).get(direction) for half in TESTED]
    return " / ".join(percent(figure["value"], 0) if figure else ABSENT for figure in figures)


def _absent(result: Json) -> list[RenderableType]:
    cells = result["absent"]
    if not cells:
        return []
    states = Counter(cell["state"] for cell in cells)
    counted = ", ".join(f"{number} {state}" for state, number in states.items())
    lines = [f"{len(cells)} of {result['cells']} cells have no figures: {counted}"]
    # One line for all seeds of a method that failed alike.
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for one in cells:
        if one["state"] != "waiting":
            key = one["experiment"], one["method"], one["state"], one["reason"] or "no reason given"
            groups.setdefault(key, []).append(one["seed"])
    for (experiment, method, state, reason), seeds in groups.items():
        where = f"{shorten(experiment, 30)}/{shorten(method, 30)}, seed {', '.join(map(str, seeds))}"
        lines.append(f"{where}: {state}: {shorten(reason, _REASON_WIDTH)}")
    return [Text(visible("\n".join(lines)))]
