"""Runs → one self-contained HTML page.

In: runs. Out: HTML text that needs no network and shows every foreign string as text. Trade-off: the page holds an even
sample of a long question list and says so; `scores.jsonl` holds all of them.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spt.metrics import METRICS
from spt.report import figures
from spt.report.load import KEPT_SCORES, Run
from spt.report.plots import curves_svg

_ROWS = 3000  # questions on a page: more makes a browser slow
_LEAST_ROWS = 100


def page(runs: Sequence[Run]) -> str:
    """Return the page; the same runs give the same text."""
    rows = min(KEPT_SCORES, max(_LEAST_ROWS, _ROWS // len(runs)))
    names = figures.labels(runs, 60)
    fluency_rules = [rule for run in runs if (rule := (run.summary.get("fluency") or {}).get("rule"))]
    rules = {name: rule for run in runs for name, rule in run.summary["match_rules"].items()}
    return _environment().get_template("page.html.j2").render(
        title=names[0] if len(runs) == 1 else f"{len(runs)} runs",
        finding=_finding(runs, names),
        runs=[_view(run, name, index, rows) for index, (run, name) in enumerate(zip(runs, names, strict=True))],
        rules={name: rules[name] for name in METRICS if name in rules},
        headlines=figures.match_rules(runs),
        notes=figures.sample_sizes(runs),
        fluency_rules=list(dict.fromkeys(fluency_rules)),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("spt", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "amount": figures.amount, "rate": figures.rate, "bounds": figures.bounds, "percent": figures.percent,
        "p": figures.p_value, "count": _count, "duration": _duration,
    }  # fmt: skip
    return environment


def _finding(runs: Sequence[Run], names: Sequence[str]) -> str:
    """Return in a sentence what a reader came for: the best reversed accuracy and what it cost."""
    asked = [index for index, run in enumerate(runs) if run.figure("reversed")]
    if not asked:
        return ""
    best = max(
        asked, key=lambda index: [(runs[index].figure(way) or {}).get("value", 0) for way in ("reversed", "forward")]
    )
    run = runs[best]
    figure = run.figure("reversed") or {}
    if len(runs) > 1 and not figure.get("value"):
        return "No run answers a reversed question."
    lead = f"Reversed accuracy: {_spoken(run.figure('reversed'))}"
    if len(runs) > 1:
        lead = f"Highest reversed accuracy: {_spoken(run.figure('reversed'))}, by {names[best]}"
    beside = (("forward", run.figure("forward")), ("natural order", run.fluency))
    return "; ".join([lead, *(f"{name} {_spoken(figure)}" for name, figure in beside if figure)]) + "."


def _spoken(figure: Mapping[str, Any] | None) -> str:
    return figures.rate(figure).replace(" ", "% ", 1)


def _view(run: Run, name: str, index: int, rows: int) -> dict[str, Any]:
    svg = curves_svg(run, salt=f"spt-{index}")
    shown = min(rows, len(run.scores))
    return {
        "run": run,
        "name": name,
        "bars": [("forward", run.figure("forward")), ("reversed", run.figure("reversed")), ("natural", run.fluency)],
        # The one text not escaped: matplotlib drew it, from numbers and a metric's name that it escaped itself.
        "curves": Markup(svg) if svg else None,  # noqa: S704
        "questions": [_question(run.scores[place * len(run.scores) // shown], run.headline) for place in range(shown)],
        "manifest": json.dumps(run.train, indent=2, ensure_ascii=False) if run.train else "",
    }


def _question(score: Mapping[str, Any], headline: str) -> dict[str, Any]:
    right = [name for name in METRICS if score.get(name) == 1]
    return {
        "direction": score.get("direction", ""),
        "relation": score.get("relation") or "",
        "prompt": score.get("prompt", ""),
        "targets": score.get("targets", ()),
        "prediction": score.get("prediction", ""),
        "logprob": score.get("logprob"),
        "result": "right" if headline in right else "partly" if right else "wrong",
        "matches": ", ".join(right),
    }


def _count(value: float | None) -> str:
    return figures.ABSENT if value is None else f"{value:,.0f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return figures.ABSENT
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
