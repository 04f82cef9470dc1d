"""Runs → one self-contained HTML page.

In: runs, their comparisons, and the folder where the page will lie. Out: HTML text that needs no network, shows every
foreign string as text, and lets no script run but its own. Trade-off: the table of questions is a block of JSON that
the page's script draws a window of at a time, since a browser cannot lay out tens of thousands of rows at once.
"""

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from spt.metrics import METRICS
from spt.report import figures
from spt.report.answers import answers_json, shown
from spt.report.guards import beside, examples, guard_cell, guard_rows, throughput
from spt.report.load import Run
from spt.report.pairs import EACH_WITH_EACH, Pair
from spt.report.plots import curves_svg
from spt.report.templates import environment

_FILES = (
    "config.yaml", "segmented/manifest.json", "train/manifest.json", "train/metrics.jsonl", "train/README.md",
    "evaluate/manifest.json", "evaluate/summary.json", "evaluate/scores.jsonl", "evaluate/leakage.jsonl",
    "evaluate/unanswered.jsonl",
)  # fmt: skip


def page(runs: Sequence[Run], pairs: Sequence[Pair], place: Path) -> str:
    """Return the page; the same runs give the same text."""
    names = figures.labels(runs, 60)
    views = [
        _view(*numbered, count, place) for numbered, count in zip(_numbered(runs, names), shown(runs), strict=True)
    ]
    rules = {name: rule for run in runs for name, rule in run.summary["match_rules"].items()}
    script = (files("spt.report") / "script.js").read_text(encoding="utf-8")
    return environment("report").get_template("page.html.j2").render(
        title=names[0] if len(runs) == 1 else f"{len(runs)} runs",
        finding=_finding(runs, names),
        runs=views,
        trained=[view for view in views if view["curves"] or view["throughput"]],
        relations=any(run.relations for run in runs),
        control=any("both" in run.relations for run in runs),
        rules={name: rules[name] for name in (*METRICS, *sorted(rules.keys() - METRICS.keys())) if name in rules},
        headlines=figures.match_rules(runs),
        notes=figures.sample_sizes(runs) + figures.server_notes(runs),
        fluency_rules=figures.fluency_rules(runs),
        neutral=_neutral_texts(runs),
        guards=_guards(runs, names),
        pairs=[asdict(pair) | {"first": names[pair.first], "second": names[pair.second]} for pair in pairs],
        each_with_each=EACH_WITH_EACH,
        columns=["result", *(["run"] if len(runs) > 1 else []), "asked", "prompt", "target", "prediction", "log-prob."],
        # The three texts not escaped: our own script, JSON in which no character can end its element, and drawings.
        answers=Markup(answers_json(runs, names)),  # noqa: S704  # as said
        script=Markup(script),  # noqa: S704  # as said
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def _numbered(runs: Sequence[Run], names: Sequence[str]) -> list[tuple[Run, str, int]]:
    return [(run, name, index) for index, (run, name) in enumerate(zip(runs, names, strict=True))]


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
    lead = f"Reversed accuracy: {_spoken(figure)}"
    if len(runs) > 1:
        lead = f"Highest reversed accuracy: {_spoken(figure)}, by {names[best]}"
    cost = (("forward", run.figure("forward")), ("natural order", run.fluency))
    return "; ".join([lead, *(f"{name} {_spoken(figure)}" for name, figure in cost if figure)]) + "."


def _spoken(figure: Mapping[str, Any]) -> str:
    return figures.spoken(figure, "\u2060–\u2060")  # a word joiner keeps the range on one line


def _neutral_texts(runs: Sequence[Run]) -> list[str]:
    found = [perplexity for run in runs if (perplexity := run.summary["perplexity"])]
    return list(dict.fromkeys(f"{figures.count(part['n_tokens'])} tokens of {part['text']}" for part in found))


def _guards(runs: Sequence[Run], names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "label": row.label,
            "rule": row.rule,
            "rows": [
                {
                    "name": name,
                    "found": guard_cell(figure),
                    "n": (figure or {}).get("n") or None,
                    "beside": beside(figure),
                    "examples": examples(figure),
                }
                for name, figure in row.cells(names)
            ],
        }
        for row in guard_rows(runs)
    ]


def _view(run: Run, name: str, index: int, answers: int, place: Path) -> dict[str, Any]:
    svg = curves_svg(run, salt=f"spt-{index}")
    return {
        "run": run,
        "name": name,
        "bars": [("forward", run.figure("forward")), ("reversed", run.figure("reversed"))],
        "curves": Markup(svg) if svg else None,  # noqa: S704  # from numbers, and names that matplotlib escaped itself
        "throughput": throughput(run),
        "shown": answers,
        "scores": relative_link(run.folder / "evaluate" / "scores.jsonl", place),
        "links": [(file, relative_link(run.folder / file, place)) for file in _FILES if (run.folder / file).exists()],
        "manifest": json.dumps(run.train, indent=2, ensure_ascii=False) if run.train else "",
    }


def relative_link(path: Path, place: Path) -> str:
    """Return the address of a file from a page in the folder `place`."""
    return quote(Path(os.path.relpath(path.absolute(), place.absolute())).as_posix(), errors="replace")
