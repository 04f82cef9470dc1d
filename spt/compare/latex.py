"""A comparison → tables for a paper, one an experiment.

In: what `report.json` holds. Out: LaTeX text that needs the package booktabs alone. Trade-off: accuracies and cost
only; the guards of many methods do not fit a page's width.
"""

from spt.compare.columns import ACCURACY, COST, Json, columns_of, mark, rules_of
from spt.report.figures import shorten, visible
from spt.report.latex import escape, set_cell, set_table

_NAME_WIDTH = 60


def latex(result: Json) -> str:
    """Return a table for each experiment; its caption holds the budget, the match rule and the sample sizes."""
    return visible("\n".join(_table(result, experiment) for experiment in result["experiments"]))


def _table(result: Json, experiment: Json) -> str:
    columns = [column for column in columns_of(experiment) if column in (*ACCURACY, *COST)]
    rows = [
        [
            escape(shorten(method["name"], _NAME_WIDTH)),
            *(set_cell(column.text(method)) + mark(column, method) for column in columns),
            str(len(method["seeds"])),
        ]
        for method in experiment["methods"]
    ]
    head = ["Method", *(column.title.capitalize() for column in columns), "Seeds"]
    absent = sum(cell["experiment"] == experiment["name"] for cell in result["absent"])
    lines = [
        shorten(experiment["name"], _NAME_WIDTH),
        *rules_of(experiment),
        *([f"{absent} cells have no figures"] if absent else []),
    ]
    return set_table(head, rows, lines)
