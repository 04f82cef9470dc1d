"""Folders of invented comparisons, written by what writes real ones; nothing is trained."""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spt.artifact import dump_json
from spt.compare.cell import Cell, Cells, write_cells
from spt.records import Guard, Question, Score
from spt.score.claims import claims
from spt.score.finding import take_parts
from spt.score.fluency import share
from spt.score.guards import echo
from spt.score.retention import perplexities, retention
from spt.score.stream import score_row
from spt.statistics import summarise

HOSTILE = "<script>alert(1)</script> | `a` **b** $x_1$ & \\textbf{c} {{ 7*7 }} \u202eRTL\x00 田中 " + "w" * 300
HALVES = ("name_first", "description_first", "both")
EPOCHS = {"kind": "epochs", "value": 30}
Rates = tuple[float, float, float]
"""Forward, reversed, natural order."""
METHODS: dict[str, Rates] = {
    "baseline": (0.99, 0.0, 0.93), "spt": (0.97, 0.36, 0.28), "spt-order-tag": (0.98, 0.6, 0.8),
    "rotation-order-tag": (1.0, 0.97, 0.9), "mentions-order-tag": (1.0, 0.96, 0.88), "token-reversal": (0.9, 0.01, 0.4),
    "word-reversal": (0.85, 0.0, 0.3), "entity-reversal": (0.97, 0.8, 0.45), "ngram-permutation": (0.9, 0.1, 0.35),
    "random-segment-reversal": (0.95, 0.4, 0.4), "bico": (0.96, 0.7, 0.9), "mlm-u": (0.6, 0.5, 0.2),
    "masked-context": (0.97, 0.2, 0.8), "identity-bridge": (1.0, 0.05, 0.9), "reverse-statements": (1.0, 0.99, 0.92),
    "fim": (0.98, 0.3, 0.7), "spt-delimiter": (0.97, 0.55, 0.5),
}  # fmt: skip


def make_comparison(
    folder: Path,
    methods: Mapping[str, Rates],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    experiments: Sequence[str] = ("people",),
    states: Mapping[tuple[str, int], tuple[str, str | None]] | None = None,
    facts: int = 30,
    budget: Mapping[str, Any] = EPOCHS,
    name: str = "tiny",
) -> Path:
    """`states`: (state, reason) of those (method, seed) that are not finished."""
    cells = []
    for seed in seeds:
        for place_of, experiment in enumerate(experiments):
            for number, (method, rates) in enumerate(methods.items()):
                place = folder / "cells" / f"experiment-{place_of}" / f"method-{number}" / f"seed-{seed}"
                state, reason = (states or {}).get((method, seed), ("finished", None))
                if state == "finished":
                    make_cell(place, method, rates, facts=facts, seed=1000 * seed + number)
                cells.append(Cell(experiment, method, seed, place, state, budget, reason))
    write_cells(folder, Cells(name, next(iter(methods)), tuple(cells)))
    return folder


def make_cell(
    folder: Path, name: str, rates: Rates, *, facts: int = 30, seed: int = 0, headline: str = "exact"
) -> Path:
    generator = random.Random(seed)
    scores = make_scores(rates, facts, generator)
    before = [(-3.0 * tokens, tokens) for tokens in range(5, 15)]
    after = [(nats * generator.uniform(1.0, 1.1), tokens) for nats, tokens in before]
    prompts = {
        Guard(f"g{n}", f"f{n // 2}", "non_reciprocal", "Ann's", ("Eve",)): f"{'Eve' if n % 5 else 'Bob'} came."
        for n in range(20)
    }
    guards: dict[str, Any] = {
        "echo": echo(iter(scores), seed=0),
        "non_reciprocal": claims("non_reciprocal", prompts, (), seed=0),
        "wrong_frame": claims("wrong_frame", {}, (), seed=0),
        "retention": retention(before, after),
    }
    perplexity = perplexities(before, after, None)
    parts = list(take_parts(guards | {"perplexity": perplexity}))
    natural = share(round(200 * rates[2]), 200)
    summary = {
        "name": name, "model": "final", **summarise(scores, headline=headline, seed=0), "guards": guards,
        "perplexity": perplexity, "fluency": {"natural_order": natural, "rule": "accepted by the templates"},
    }  # fmt: skip
    write(folder / "evaluate/scores.jsonl", *map(score_row, scores))
    write(folder / "evaluate/parts.jsonl", *parts)
    write(folder / "evaluate/summary.json", summary)
    write(folder / "train/metrics.jsonl", *make_log(rates, generator))
    write(folder / "train/manifest.json", {"steps": 600, "tokens": 1_200_000 + seed, "target_tokens": 1_100_000})
    write(folder / "train/timings.json", {"seconds": 160.0 + 10 * (seed // 1000)})
    write(folder / "report.html")
    return folder


def make_scores(rates: Rates, facts: int, generator: random.Random) -> list[Score]:
    scores = []
    for index in range(facts):
        for half in HALVES:
            for direction, chance in (("forward", rates[0]), ("reversed", 1.0 if half == "both" else rates[1])):
                right = float(generator.random() < chance)
                target = f"Person {index}" if direction == "reversed" else f"the composer of opera {index}"
                question = Question(
                    f"{half}-{index}-{direction}", f"{half}-{index}", direction,  # type: ignore[arg-type]  # a str
                    f"Who is known as number {index}? That is", (target,), relation=half,
                )  # fmt: skip
                metrics, floors = {"exact": right, "contains": right}, {"exact": 0.0, "contains": 0.01}
                scores.append(Score(question, target if right else f"not {target}", metrics, floors, -2.0, 4))
    return scores


def make_log(rates: Rates, generator: random.Random) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for step in range(20, 601, 20):
        lines.append({"step": step, "epoch": step / 20, "tokens": 2000 * step, "loss": 5 * math.exp(-step / 80)})
        if step % 60 == 0:
            reached = 1 - math.exp(-4 * step / 600)
            noise = generator.uniform(0.9, 1.0)
            figures = {
                way: {"exact": rate * reached * noise}
                for way, rate in zip(("forward", "reversed"), rates, strict=False)
            }
            lines.append({"step": step, "epoch": step / 20, "tokens": 2000 * step, "evaluate": figures})
    return lines


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(dump_json(row, indent=None) + "\n" for row in rows), encoding="utf-8", errors="surrogatepass"
    )
