"""Questions → scores, on one device or many.

Every rank answers its share; scores travel as objects with their ids and are counted when they meet, so that none is
lost or doubled whatever the number of ranks. Trade-off: all scores are in memory at once.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from accelerate import Accelerator
from accelerate.utils import gather_object

from spt.config import Evaluate
from spt.errors import WorkError
from spt.metrics import measure
from spt.progress import track
from spt.records import DIRECTIONS, Question, Score
from spt.score.generate import generate, prompt_ids
from spt.score.likelihood import log_probabilities
from spt.statistics import floor_targets

CHUNK = 512
"""Questions between two moves of the progress bar."""


def score_questions(
    model: Any,
    tokenizer: Any,
    questions: Sequence[Question],
    settings: Evaluate,
    *,
    seed: int = 0,
    accelerator: Accelerator | None = None,
    label: str = "questions",
) -> list[Score]:
    """Return a score for each question, in order, on every rank."""
    rank, world = (accelerator.process_index, accelerator.num_processes) if accelerator else (0, 1)
    floors = floor_targets(questions, seed)
    own = questions[rank::world]
    scores: list[Score] = []
    with track(label, len(own), "questions") as bar:
        for start in range(0, len(own), CHUNK):
            chunk = own[start : start + CHUNK]
            scores += _score_chunk(model, tokenizer, chunk, floors, settings)
            bar.advance(len(chunk))
    gathered = {score.question.id: score for score in (gather_object(scores) if world > 1 else scores)}
    assert len(gathered) == len(questions), f"{len(gathered)} scores for {len(questions)} questions"
    return [gathered[question.id] for question in questions]


def _score_chunk(
    model: Any, tokenizer: Any, questions: Sequence[Question], floors: Any, settings: Evaluate
) -> list[Score]:
    prompts = prompt_ids(tokenizer, [question.prompt for question in questions])
    limit, size = settings.max_new_tokens, settings.batch_size
    predictions = generate(model, tokenizer, prompts, max_new_tokens=limit, batch_size=size)
    pairs = [(q.prompt, text) for q in questions for text in (*q.targets, *q.distractors)]
    nats = iter(log_probabilities(model, tokenizer, pairs, size))
    scores = []
    for question, prediction in zip(questions, predictions, strict=True):
        targets = [next(nats) for _ in question.targets]
        best, tokens = max(targets)
        if not isfinite(best):
            raise WorkError(f"question {question.id!r}: the model's log-probability is {best}; its weights are broken")
        scores.append(
            Score(
                question=question,
                prediction=prediction,
                metrics=measure(prediction, question.targets, settings.metrics),
                floors=_floors(prediction, floors[question.id], settings.metrics),
                logprob=best,
                target_tokens=tokens,
                distractor_logprobs=tuple(next(nats)[0] for _ in question.distractors),
            )
        )
    return scores


def _floors(prediction: str, others: Sequence[str], metrics: Sequence[str]) -> dict[str, float]:
    """Return each metric's mean over other facts' targets: what a right-looking wrong answer would score."""
    if not others:
        return {}
    measured = [measure(prediction, (other,), metrics) for other in others]
    return {metric: sum(row[metric] for row in measured) / len(measured) for metric in metrics}


def rates(scores: Sequence[Score]) -> dict[str, dict[str, float]]:
    """Return the plain share of right answers per direction and metric, for curves."""
    result: dict[str, dict[str, float]] = {}
    for direction in DIRECTIONS:
        own = [score for score in scores if score.question.direction == direction]
        if own:
            result[direction] = {name: sum(s.metrics[name] for s in own) / len(own) for name in own[0].metrics}
    return result


def spread(questions: Sequence[Question], at_most: int) -> Sequence[Question]:
    """Return up to `at_most` questions: those of facts taken at even distances, so that both directions stay paired."""
    if len(questions) <= at_most:
        return questions
    facts = list(dict.fromkeys(question.fact_id for question in questions))
    kept = max(1, at_most * len(facts) // len(questions))
    chosen = {facts[number * len(facts) // kept] for number in range(kept)}
    return [question for question in questions if question.fact_id in chosen][:at_most]
