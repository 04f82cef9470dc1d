"""What the guards found, and how fast training went, in the words of every kind of report.

In: runs. Out: rows of short text. Trade-off: a guard that a run lacks is a dash and one that could not be measured says
why, so an older run stands beside a newer one without being told apart from it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from spt.report.figures import ABSENT, count, duration, reasons, spoken, visible
from spt.report.load import Run, known

Figure = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GuardRow:
    """One guard over all runs: a figure for each, None where it was not looked for."""

    label: str
    rule: str
    figures: tuple[Figure | None, ...]

    def cells(self, names: Sequence[str]) -> list[tuple[str, Figure | None]]:
        """Return the runs' names with what was found; one pair, `all`, where no run measured it for the same reason."""
        alike = len({guard_cell(figure) for figure in self.figures}) == 1
        if alike and len(names) > 1 and known(self.figures[0]) is None:
            return [("all", self.figures[0])]
        return list(zip(names, self.figures, strict=True))


def guard_rows(runs: Sequence[Run]) -> list[GuardRow]:
    """Return a row for each guard that any of the runs has, in the order in which they are first met."""
    rows = []
    for name in dict.fromkeys(name for run in runs for name in run.guards):
        figures = tuple(run.guards.get(name) for run in runs)
        found = [figure for figure in figures if figure]
        label, rule = (next((figure[key] for figure in found if figure.get(key)), "") for key in ("label", "rule"))
        rows.append(GuardRow(label or name.replace("_", " "), rule, figures))
    return rows


def guard_cell(figure: Figure | None) -> str:
    """Return what a guard found, such as `3.0% [1-5]`, `1.02 [0.99-1.05]`, or why nothing; and what it leaves out."""
    if figure is None:
        return ABSENT
    lost = figure.get("unanswered")
    left_out = f"; without {reasons(lost, 'prompt')}" if lost else ""
    if figure.get("value") is None:
        return (f"not measured: {figure['reason']}" if figure.get("reason") else "not measured") + left_out
    return spoken(figure) + left_out


def beside(figure: Figure | None) -> list[str]:
    """Return a line for each further figure that a guard holds, such as a margin in nats: what, how much, its rule."""
    parts = {name: part for name, part in (figure or {}).items() if isinstance(part, Mapping) and "value" in part}
    return [
        f"{visible(part.get('label') or name)}: {guard_cell(part)}"
        + (f" ({visible(part['rule'])})" if part.get("rule") else "")
        for name, part in parts.items()
    ]


def examples(figure: Figure | None) -> list[str]:
    """Return each example of a guard as one text: `key: value` lines of an object, else JSON or the text itself."""
    return [_example(example) for example in (figure or {}).get("examples") or ()]


def _example(example: Any) -> str:
    if isinstance(example, Mapping):
        return "\n".join(f"{visible(name)}: {_example(value)}" for name, value in example.items())
    return visible(example) if isinstance(example, str) else json.dumps(example, ensure_ascii=False)


def throughput(run: Run) -> str:
    """Return in a line how long training took and how fast it went; empty where the run was not trained here."""
    parts = []
    if run.train.get("target_tokens") is not None:
        parts.append(f"{count(run.train['target_tokens'])} target tokens in {count(run.train.get('steps'))} steps")
    if run.seconds is not None:
        parts.append(duration(run.seconds))
    # Runs of the older format have the rate beside the loss.
    found = [line.get("throughput") or line for line in run.log]
    for name, text in _RATES.items():
        values = [line[name] for line in found if isinstance(line.get(name), int | float)]
        if values:
            parts.append(text.format(median(values)))
    return ", ".join(parts)


_RATES = {
    "tokens_per_second": "median {:,.0f} tokens/s",
    "non_padding": "{:.0%} of positions no padding",
    "mfu": "{:.0%} model FLOP utilisation",
}
"""Columns of `metrics.jsonl`."""
