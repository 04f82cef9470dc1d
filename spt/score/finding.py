"""What a guard found, as `summary.json` holds it: a figure, the rule it was taken by, and examples.

In: values of prompts, or nothing. Out: plain JSON values; and what a figure is made of, for `parts.jsonl`. Trade-off: a
guard that cannot be measured has the same keys and says why, so that no reader has to know which guards a set can have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spt.statistics.bootstrap import intervals
from spt.statistics.facts import FactTotals

Finding = dict[str, Any]
Part = tuple[str, float, float]
"""A fact or a text, the total of its values, and their number: what chance draws as a whole."""
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


def share_of_totals(
    label: str, rule: str, totals: FactTotals, *, seed: int, examples: Sequence[Mapping[str, Any]] = ()
) -> Finding:
    """Return a share from the hits and the number of prompts of each fact, with its interval over facts."""
    (interval,) = intervals([totals], [(0.0, 1.0)], seed=seed)
    n = int(totals.counts.sum())
    return finding(label, rule, **asdict(interval), n=n, examples=examples, parts=_parts(totals))


def _parts(totals: FactTotals) -> Iterator[Part]:
    for fact, total, count in zip(totals.facts, totals.sums, totals.counts, strict=True):
        yield fact, float(total), float(count)


def not_measured(label: str, rule: str, reason: str, unit: str = "share") -> Finding:
    """Return a guard without a figure, and why."""
    return {
        "label": label, "rule": rule, "value": None, "low": None, "high": None, "n": 0, "unit": unit,
        "examples": [], "reason": reason,
    }  # fmt: skip


def take_parts(figures: Mapping[str, dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    """Yield each part of the figures as a row of `parts.jsonl`, and take it out of them: a summary holds no lists."""
    for name, figure in figures.items():
        for part, total, count in (figure or {}).pop("parts", ()):
            yield {"figure": name, "part": part, "total": total, "count": count}
