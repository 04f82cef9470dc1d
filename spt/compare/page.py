"""A comparison → one self-contained HTML page.

In: what `report.json` holds, and the folder where the page will lie. Out: HTML text that needs no network and no
script, and shows every foreign string as text. Trade-off: each experiment is a block of its own, so the same method is
looked for anew in each.
"""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from spt.compare.columns import MARKED, Json, columns_of, notes_of, relation_columns
from spt.compare.plots import cost, draw_svg, scatter
from spt.report.figures import shorten, spoken
from spt.report.page import relative_link
from spt.report.templates import environment

_NAME_WIDTH = 60


def page(result: Json, place: Path) -> str:
    """Return the page; the same result gives the same text."""
    experiments = [
        _view(experiment, number, result["baseline"], place) for number, experiment in enumerate(result["experiments"])
    ]
    template = environment("compare").get_template("comparison.html.j2")
    return template.render(
        name=shorten(result["name"], _NAME_WIDTH),
        baseline=result["baseline"],
        experiments=experiments,
        absent=result["absent"],
        cells=result["cells"],
        finding=" ".join(filter(None, (_finding(view) for view in experiments))),
    )


def _view(experiment: Json, number: int, baseline: str, place: Path) -> dict[str, Any]:
    columns = columns_of(experiment)
    drawings = [draw_svg(draw, experiment, f"spt-compare-{number}-{draw.__name__}") for draw in (scatter, cost)]
    against = [row for row in experiment["pairs"] if row["first"] == baseline]
    others = [row for row in experiment["pairs"] if row["first"] != baseline]
    return {
        "name": shorten(experiment["name"], _NAME_WIDTH),
        "id": f"experiment-{number}",
        "notes": [note for note in notes_of(experiment) if note != MARKED],
        "marked": any(method["best"] for method in experiment["methods"]),
        "columns": columns,
        "relations": relation_columns(experiment),
        "methods": [{**method, "links": _links(method, place)} for method in experiment["methods"]],
        # Drawn from numbers, and from names that matplotlib escaped itself.
        "scatter": Markup(drawings[0]) if drawings[0] else None,  # noqa: S704  # as said
        "cost": Markup(drawings[1]) if drawings[1] else None,  # noqa: S704  # as said
        "pairs": [("from", against), ("of other methods", others)],
        "rules": {column.title: column.rule for column in columns if column.rule},
    }  # fmt: skip


def _links(method: Json, place: Path) -> list[dict[str, Any]]:
    """Return each cell's seed, state, and where its own report lies, or its folder, if there is one."""
    links = []
    for cell in method["cells"]:
        folder = place / cell["folder"]
        target = folder / "report.html" if (folder / "report.html").exists() else folder
        address = relative_link(target, place) if target.exists() else None
        links.append({"seed": cell["seed"], "state": cell["state"], "address": address})
    return links


def _finding(view: dict[str, Any]) -> str:
    """Return in a sentence which methods answer reversed questions best."""
    asked = [method for method in view["methods"] if method["reversed"]]
    if not asked:
        return ""
    best = max(asked, key=lambda method: method["reversed"]["value"])
    if not best["best"]:
        return f"{view['name']}: no method answers a reversed question."
    others = [shorten(method["name"], _NAME_WIDTH) for method in asked if method["best"] and method is not best]
    beside = f" (not significantly below it: {', '.join(others)})" if others else ""
    lead = f"{view['name']}: highest reversed accuracy {spoken(best['reversed'], '–')}"
    return f"{lead}, by {shorten(best['name'], _NAME_WIDTH)}{beside}."
