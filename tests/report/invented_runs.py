"""Folders of invented finished runs, as the evaluation and training stages leave them."""

import json
import math
import random
from pathlib import Path
from typing import Any

from spt.records import Question, Score
from spt.statistics import summarise

HALVES = ("name_first", "description_first", "both")
HOSTILE = (
    "<script>alert(1)</script></script><!-- ]]> & {{ 7*7 }} \u2028 "
    "<img src=x onerror=alert(2)> | \u202eRTL\x00 $x_1$ `a` _b_ 田中 😀 مرحبا \ud800 " + "w" * 5000
)
METHODS = {
    "baseline": (0.99, 0.0, 0.94),
    "spt": (0.97, 0.36, 0.28),
    "spt-order-tag": (0.98, 0.6, 0.8),
    "rotation-order-tag": (1.0, 0.97, 0.9),
}
"""Name: forward, reversed, natural order."""


def make_scores(forward: float, backward: float, *, facts: int = 30, seed: int = 0) -> list[Score]:
    generator = random.Random(seed)
    scores = []
    for index in range(facts):
        for half in HALVES:
            for direction, chance in (("forward", forward), ("reversed", 1.0 if half == "both" else backward)):
                right = float(generator.random() < chance)
                target = f"Person {index}" if direction == "reversed" else f"the composer of the opera number {index}"
                question = Question(
                    f"{half}-{index}-{direction}", f"{half}-{index}", direction,  # type: ignore[arg-type]  # a str
                    f"Who is known as number {index}? That is", (target,), relation=half,
                )  # fmt: skip
                loose = max(right, float(generator.random() < 0.1))
                metrics = {"exact": right, "startswith": right, "contains": loose}
                floors = {"exact": 0.0, "startswith": 0.0, "contains": 0.01}
                prediction = target if right else f"not {target}"
                scores.append(Score(question, prediction, metrics, floors, -generator.random() * (9 - 8 * right), 4))
    return scores


def as_row(score: Score) -> dict[str, Any]:
    question = score.question
    return {
        "id": question.id, "fact_id": question.fact_id, "direction": question.direction, "relation": question.relation,
        "prompt": question.prompt, "targets": list(question.targets), "prediction": score.prediction, **score.metrics,
        **{f"{name}_floor": value for name, value in score.floors.items()}, "logprob": score.logprob,
        "target_tokens": score.target_tokens,
    }  # fmt: skip


def make_run(
    folder: Path,
    scores: list[Score],
    *,
    name: str = "spt",
    natural: float | None = 0.9,
    trained: bool = True,
    steps: int = 600,
    guards: bool = True,
) -> Path:
    summary = {
        "name": name, "model": "scratch-1.2M", **summarise(scores, headline="exact", seed=0), "perplexity": None,
        "fluency": natural and {
            "natural_order": {"value": natural, "low": natural - 0.05, "high": natural + 0.04, "n": 200},
            "rule": "accepted by the benchmark's templates",
        },
    }  # fmt: skip
    if guards:
        summary["guards"] = make_guards(name)
    if trained and name != "baseline":
        summary["perplexity"] = {"before": 31.2, "after": 34.875, "n_tokens": 12000, "text": "neutral.txt"}
    write(folder / "evaluate/scores.jsonl", *(as_row(score) for score in scores))
    write(folder / "evaluate/summary.json", summary)
    if trained:
        write(folder / "train/metrics.jsonl", *_log(summary, steps))
        write(
            folder / "train/manifest.json", {"steps": steps, "epochs": 30, "target_tokens": 1_234_567, "world_size": 1}
        )
        write(folder / "train/timings.json", {"seconds": 167.4})
        (folder / "config.yaml").write_text(f"name: {json.dumps(name)}\nseed: 0\ntrain:\n  epochs: 30\n")
    return folder


def make_guards(text: str) -> dict[str, Any]:
    nats = {"label": "margin", "value": -1.25, "low": -2.0, "high": -0.5, "n": 40, "unit": "nats", "rule": "log-odds"}
    absent = {"value": None, "low": None, "high": None, "n": 0}
    return {
        "echo": {
            "label": "answers copied from the prompt", "value": 0.03, "low": 0.01, "high": 0.05, "n": 120,
            "unit": "share", "rule": "the answer's first three words stand in the prompt",
            "examples": [{"prompt": text, "prediction": f"{text}!"}, text],
        },
        "wrong_frame": absent | {"label": "known answers", "reason": "the set has no guards.jsonl", "examples": []},
        "non_reciprocal": absent | {"value": 0.0, "low": 0.0, "high": 0.09, "n": 40, "margin": nats},
        "retention": {"value": 1.04, "low": 1.01, "high": 1.08, "n": 40, "unit": "ratio"},
        "leakage": None,
    }  # fmt: skip


def _log(summary: dict[str, Any], steps: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        loss = 0.9 + 5 * math.exp(-step / 80)
        rate = {"tokens_per_second": 5000.0 + step % 7, "non_padding": 0.93, "mfu": None}
        lines.append({"step": step, "epoch": step / 20, "loss": loss, "learning_rate": 1e-3, "throughput": rate})
        if step % (steps // 10) == 0:
            reached = 1 - math.exp(-4 * step / steps)
            figures = {
                way: {"exact": summary[way]["exact"]["value"] * reached} if summary[way] else None
                for way in ("forward", "reversed")
            }
            lines.append({"step": step, "epoch": step / 20, "evaluate": figures})
    return lines


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
