"""`spt compare --dry-run`: everything is checked, and each cell says what it would take and how far it is.

In: a comparison. Out: one entry a cell. Nothing is written. Trade-off: steps and tokens are counted once a method and
experiment, with the first seed, since a seed changes them by no more than what it draws.
"""

from collections.abc import Sequence
from typing import Any

from spt.compare.check import check_plans
from spt.compare.config import Comparison
from spt.compare.grid import Plan, make_plans
from spt.compare.standing import stand
from spt.progress import track


def plan_comparison(comparison: Comparison, overrides: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each cell its names, folder, budget, state (`finished`, `waiting`, `stale`), steps and tokens.

    `segmented`: whether these were counted on segmented data; on a corpus alone they lack what `augment` stores.
    Raises what `run_comparison` would raise before its first cell.
    """
    plans = make_plans(comparison, overrides)
    check_plans(plans)
    known: dict[tuple[str, str], dict[str, Any]] = {}
    cells = []
    with track("plan", len(plans), "cells") as bar:
        for plan in plans:
            kind = plan.cell.experiment, plan.cell.method
            known[kind] = known[kind] if kind in known else _count(plan)
            cells.append(_entry(plan) | known[kind])
            bar.advance(note=plan.cell.label)
    return cells


def _entry(plan: Plan) -> dict[str, Any]:
    cell, standing = plan.cell, stand(plan.config)
    state = "finished" if standing.finished else "waiting" if standing.stale is None else "stale"
    return {
        "experiment": cell.experiment,
        "method": cell.method,
        "seed": cell.seed,
        "folder": str(cell.folder),
        "budget": dict(cell.budget),
        "state": state,
        "reason": standing.stale,
    }


def _count(plan: Plan) -> dict[str, Any]:
    from spt.train.preview import preview

    seen = preview(plan.config, 1)
    return {"steps": seen.steps, "tokens": seen.tokens, "segmented": seen.segmented}
