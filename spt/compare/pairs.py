"""The methods of an experiment → how any two differ, and whether that could be chance.

In: a grid of each method and direction. Out: a row a pair and direction; those with the baseline first. Trade-off: the
test is over facts, each the mean of its seeds, so it speaks of these seeds; the difference's interval is over both.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from spt.compare.intervals import Figure, Grid, common, draw_means, interval
from spt.records import DIRECTIONS, Direction
from spt.statistics import DRAWS, holm
from spt.statistics.bootstrap import Bounds
from spt.statistics.permutation import sign_flip

LEVEL = 0.05
"""A corrected p-value below this is called significant."""
_PATTERNS = 100
"""Patterns of signs a test: with as many tests as patterns, no corrected p-value could be small."""

Row = dict[str, Any]


def compare_methods(grids: Mapping[tuple[str, Direction], Grid], names: Sequence[str], bounds: Bounds) -> list[Row]:
    """Return {"first", "second", "direction", "value", "low", "high", "p_value", "p_holm", "n_facts", "seeds"} rows.

    `grids` are by method and direction; the value is second minus first, over the seeds and facts that both have.
    Pairs without any are left out. `names` has the baseline first; Holm's correction is for all rows.
    """
    asked = [(*pair, direction) for pair in combinations(names, 2) for direction in DIRECTIONS]
    found = []
    for first, second, direction in asked:
        left, right = grids.get((first, direction)), grids.get((second, direction))
        both = common(left, right) if left and right else None
        if both:
            found.append(({"first": first, "second": second, "direction": direction}, both))
    distinct = {id(grid): grid for _, both in found for grid in both}
    drawn = dict(zip(distinct, draw_means(list(distinct.values())), strict=True))
    patterns = max(DRAWS, _PATTERNS * len(found))
    p_values = sign_flip([right.means - left.means for _, (left, right) in found], draws=patterns)
    width = bounds[1] - bounds[0]
    return [
        {
            **name,
            **_difference(left, right, drawn[id(right)] - drawn[id(left)], (-width, width)),
            "p_value": p_value,
            "p_holm": p_holm,
            "n_facts": len(left.facts),
            "seeds": list(left.seeds),
        }
        for (name, (left, right)), p_value, p_holm in zip(found, p_values, holm(p_values), strict=True)
    ]


def _difference(left: Grid, right: Grid, drawn: Any, bounds: Bounds) -> Figure:
    return interval(right.value - left.value, right.cells - left.cells, drawn, bounds)


def best_methods(reversed_figures: Mapping[str, Figure | None], pairs: Sequence[Row]) -> list[str]:
    """Return the method with the highest reversed accuracy, and those not significantly below it; none if all are 0.

    One that was not compared with it, for want of a common seed, is none of them.
    """
    known = {name: figure["value"] for name, figure in reversed_figures.items() if figure}
    if not known or max(known.values()) <= 0:
        return []
    top = max(known, key=lambda name: known[name])
    tested = [row for row in pairs if row["direction"] == "reversed" and top in (row["first"], row["second"])]
    alike = {
        name
        for row in tested
        for name in (row["first"], row["second"])
        if row["p_holm"] >= LEVEL or known[name] >= known[top]
    }
    return [name for name in known if name == top or name in alike]
