"""A row of `scores.jsonl` → Score.

In: a row as it was written. Out: the score, for the evaluation that goes on and for the report. Trade-off: the row is
taken at its word; who reads a file checks it.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from spt.records import Question, Score


def score_of(row: Mapping[str, Any], metrics: Sequence[str]) -> Score:
    """Return the score of a row, with the metrics named; a log-probability that was not given is not a number."""
    return Score(
        question=Question(
            row["id"], row["fact_id"], row["direction"], row["prompt"], tuple(row["targets"]),
            tuple(row.get("distractors", ())), row.get("relation"),
        ),
        prediction=row["prediction"],
        metrics={name: row[name] for name in metrics if name in row},
        floors={name: row[f"{name}_floor"] for name in metrics if f"{name}_floor" in row},
        logprob=row.get("logprob", nan),
        target_tokens=row.get("target_tokens", 0),
        distractor_logprobs=tuple(row.get("distractor_logprobs", ())),
    )  # fmt: skip
