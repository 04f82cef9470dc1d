"""Scores → `scores.jsonl`, chunk by chunk, and back.

In: scores in the order of the questions. Out: a file to which whole chunks are appended and flushed to the disk, so
that a killed evaluation goes on after the last of them. Trade-off: a chunk that was written in part, or damaged, is
scored again whole, since a batch of other questions could change the last digit of a number, and the same run gives the
same bytes.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from spt.artifact import dump_json
from spt.errors import DamagedError
from spt.metrics import METRICS
from spt.metrics.stored import score_of
from spt.records import Question, Score

_ROUNDING = 1e-3
"""By how much a sum or a mean may pass its bounds."""


class ScoreFile:
    """The scores of an evaluation that is under way; `metrics` are those it measures."""

    def __init__(self, path: Path, metrics: Sequence[str]) -> None:
        self.path, self.metrics = path, metrics

    def resume(self, questions: Sequence[Question], chunk: int) -> int:
        """Return how many questions were scored before, in whole chunks, and cut off what is beyond."""
        self.path.touch()
        done = end = place = 0
        with self.path.open("rb") as file:
            for number, (line, question) in enumerate(zip(file, questions, strict=False), start=1):
                if not self._holds(line, question):
                    break
                place += len(line)
                if number % chunk == 0 or number == len(questions):
                    done, end = number, place
        os.truncate(self.path, end)
        return done

    def _holds(self, line: bytes, question: Question) -> bool:
        """Return whether a line is a whole score of the question, as it was written."""
        try:
            score = score_of(json.loads(line), self.metrics)
            return line.endswith(b"\n") and score.question == question and _is_sound(score)
        except (ValueError, LookupError, TypeError, RecursionError):
            return False

    def append(self, scores: Sequence[Score]) -> None:
        """Write scores behind the others, and return once they are on the disk."""
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(dump_json(score_row(score), indent=None) + "\n" for score in scores)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            error.filename = str(self.path)  # a full disk does not say which it is
            raise

    def read(self) -> Iterator[Score]:
        """Yield the scores, one at a time.

        Raises DamagedError.
        """
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield score_of(json.loads(line), self.metrics)
                except (ValueError, KeyError, TypeError) as error:
                    raise DamagedError(
                        f"{self.path}:{number}: is no score ({error}); evaluate again with --force"
                    ) from None


def _is_sound(score: Score) -> bool:
    """Return whether a score's numbers are numbers, within the bounds of their metrics."""
    parts = (score.metrics, score.floors)
    within = [_within(value, *METRICS[name].bounds) for part in parts for name, value in part.items()]
    nats = [isinstance(value, int | float) for value in (score.logprob, *score.distractor_logprobs)]
    return isinstance(score.prediction, str) and isinstance(score.target_tokens, int) and all([*within, *nats])


def _within(value: float, low: float, high: float) -> bool:
    return low - _ROUNDING <= value <= high + _ROUNDING


def score_row(score: Score) -> dict[str, Any]:
    """Return a score as one flat JSON object: the question, the prediction, every metric and its floor."""
    row = {key: value for key, value in asdict(score.question).items() if value not in (None, ())}
    row |= {"prediction": score.prediction, **score.metrics}
    row |= {f"{name}_floor": value for name, value in score.floors.items()}
    if isfinite(score.logprob):
        row |= {"logprob": score.logprob, "target_tokens": score.target_tokens}
    return row | ({"distractor_logprobs": score.distractor_logprobs} if score.distractor_logprobs else {})
