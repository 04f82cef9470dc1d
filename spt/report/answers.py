"""Runs → the table of every question, as one block of JSON for the page's script.

    {"runs": [label, ...],
     "questions": [[id, direction, relation, prompt, [target, ...]], ...],
     "answers": [[run, question, result, prediction, log-probability, right by], ...]}

In: the scores of runs. Out: text that can stand inside a script element. Trade-off: a question is written once for all
runs that were asked it, so the script looks it up by number; beyond a bound the answers are an even sample.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from spt.metrics import METRICS
from spt.records import Score
from spt.report.figures import visible
from spt.report.load import Run

ROWS = 60_000
"""Answers on a page, of all runs together: about 20 MB, which a browser opens in a second or two."""
RESULTS = ("wrong", "partly", "right")
_TEXT = [metric.name for metric in METRICS.values() if metric.needs == "prediction"]
# Whatever could end the script element or a line of it; all of these only ever stand inside JSON strings.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def shown(runs: Sequence[Run]) -> list[int]:
    """Return how many answers of each run the page holds: all, or an equal share of `ROWS`."""
    total = sum(run.n_scores for run in runs)
    return [run.n_scores if total <= ROWS else min(run.n_scores, max(1, ROWS // len(runs))) for run in runs]


def answers_json(runs: Sequence[Run], labels: Sequence[str]) -> str:
    """Return the block."""
    questions: dict[tuple[Any, ...], int] = {}
    answers: list[list[Any]] = []
    for number, (run, count) in enumerate(zip(runs, shown(runs), strict=True)):
        for place, score in enumerate(run.scores()):
            if place * count % run.n_scores < count:  # for exactly `count` places, evenly spaced, the first among them
                question = score.question
                key = (question.id, question.direction, question.relation or "", question.prompt, question.targets)
                answers.append([number, questions.setdefault(key, len(questions)), *_answer(score, run.headline)])
    block = {"runs": labels, "questions": list(questions), "answers": answers}
    return escape_json(_visible(block))


def escape_json(value: Any) -> str:
    """Return JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_UNSAFE)


def _answer(score: Score, headline: str) -> tuple[int, str, float | None, str]:
    right = [name for name in dict.fromkeys((headline, *_TEXT)) if score.metrics.get(name) == 1]
    result = "right" if headline in right else "partly" if right or score.metrics.get(headline, 0) > 0 else "wrong"
    logprob = None if math.isnan(score.logprob) else round(score.logprob, 2)
    return RESULTS.index(result), score.prediction, logprob, ", ".join(right)


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {name: _visible(item) for name, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value
