"""What a guard found, as `summary.json` holds it: a figure, the rule it was taken by, and examples.

In: values of prompts, or nothing. Out: plain JSON values. Trade-off: a guard that cannot be measured has the same keys
and says why, so that no reader has to know which guards a set can have.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from spt.statistics import bootstrap_mean

Finding = dict[str, Any]
SHOWN = 20
"""Examples kept in a summary."""


def finding(
    label: str,
    rule: str,
    *,
    value: float,
    low: float | None,
    high: float | None,
    n: int,
    unit: str = "share",
    examples: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> Finding:
    """Return a figure with its interval; `n` is what it is over, `unit` a `share` (0 is best) or a `ratio` (1 is)."""
    return {
        "label": label, "rule": rule, "value": value, "low": low, "high": high, "n": n, "unit": unit,
        "examples": list(examples[:SHOWN]), **more,
    }  # fmt: skip


def share_of_facts(
    label: str,
    rule: str,
    hits: Sequence[bool],
    fact_ids: Sequence[str],
    *,
    seed: int,
    examples: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> Finding:
    """Return the share of prompts that are hits, with its interval over facts."""
    interval = bootstrap_mean(list(map(float, hits)), fact_ids, seed=seed)
    return finding(
        label, rule, value=interval.value, low=interval.low, high=interval.high, n=len(hits), examples=examples, **more
    )


def not_measured(label: str, rule: str, reason: str, unit: str = "share") -> Finding:
    """Return a guard without a figure, and why."""
    return {
        "label": label, "rule": rule, "value": None, "low": None, "high": None, "n": 0, "unit": unit,
        "examples": [], "reason": reason,
    }  # fmt: skip
