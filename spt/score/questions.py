"""Questions → scores, on one device or many.

Every rank answers its share; scores travel as objects with their ids and are counted when they meet, so that none is
lost or doubled whatever the number of ranks. Trade-off: all scores are in memory at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from accelerate import Accelerator
from accelerate.utils import gather_object

from spt.config import Evaluate
from spt.errors import WorkError
from spt.metrics import METRICS, Answer, Candidates, Group, candidates, measure, measure_floors, rank_targets
from spt.progress import track
from spt.records import DIRECTIONS, Question, Score
from spt.score.generate import generate, prompt_ids
from spt.score.likelihood import log_probabilities
from spt.statistics import floor_targets, wordings

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
    floors, worded = floor_targets(questions, seed), wordings(questions)
    ranked = any(METRICS[name].needs == "rank" for name in settings.metrics)
    pools = candidates(questions) if ranked else {}
    own = questions[rank::world]
    scores: list[Score] = []
    with track(label, len(own), "questions") as bar:
        for start in range(0, len(own), CHUNK):
            chunk = own[start : start + CHUNK]
            scores += _score_chunk(model, tokenizer, chunk, floors, worded, pools, settings)
            bar.advance(len(chunk))
    gathered = {score.question.id: score for score in (gather_object(scores) if world > 1 else scores)}
    assert len(gathered) == len(questions), f"{len(gathered)} scores for {len(questions)} questions"
    return [gathered[question.id] for question in questions]


def _score_chunk(
    model: Any,
    tokenizer: Any,
    questions: Sequence[Question],
    floors: Any,
    worded: Any,
    pools: Mapping[Group, Candidates],
    settings: Evaluate,
) -> list[Score]:
    prompts = prompt_ids(tokenizer, [question.prompt for question in questions])
    limit, size = settings.max_new_tokens, settings.batch_size
    predictions = generate(model, tokenizer, prompts, max_new_tokens=limit, batch_size=size)
    pairs = [(q.prompt, text) for q in questions for text in (*q.targets, *q.distractors)]
    nats = iter(log_probabilities(model, tokenizer, pairs, size))
    scores = []
    for question, prediction in zip(questions, predictions, strict=True):
        answer = Answer(
            prediction,
            question.targets,
            worded[question.id],
            logprobs=tuple(next(nats) for _ in question.targets),
            distractor_logprobs=tuple(next(nats)[0] for _ in question.distractors),
        )
        if pools:
            pool = pools[question.direction, question.relation]
            rank, rivals = _rank(model, tokenizer, question, pool, worded[question.id], size)
            answer = replace(answer, rank=rank, rivals=rivals)
        scores.append(_score(question, answer, floors[question.id], settings.metrics))
    return scores


def _rank(
    model: Any, tokenizer: Any, question: Question, pool: Candidates, right: Sequence[str], batch_size: int
) -> tuple[float, int]:
    found = log_probabilities(model, tokenizer, [(question.prompt, text) for text in pool.texts], batch_size)
    nats = np.array([[value for value, _ in found]])
    ranks, rivals = rank_targets(nats, pool.among(question.targets)[None], pool.among(right)[None])
    return float(ranks[0]), int(rivals[0])


def _score(question: Question, answer: Answer, others: Sequence[tuple[str, ...]], metrics: Sequence[str]) -> Score:
    best, tokens = max(answer.logprobs)
    if not isfinite(best):
        raise WorkError(f"question {question.id!r}: the model's log-probability is {best}; its weights are broken")
    return Score(
        question=question,
        prediction=answer.prediction,
        metrics=measure(answer, metrics),
        floors=measure_floors(answer, others, metrics),
        logprob=best,
        target_tokens=tokens,
        distractor_logprobs=answer.distractor_logprobs,
    )


def rates(scores: Sequence[Score]) -> dict[str, dict[str, float]]:
    """Return the plain mean of each metric per direction, over the questions it applies to, for curves."""
    result: dict[str, dict[str, float]] = {}
    for direction in DIRECTIONS:
        own = [score for score in scores if score.question.direction == direction]
        values = {name: [s.metrics[name] for s in own if name in s.metrics] for name in METRICS}
        if own:
            result[direction] = {name: sum(found) / len(found) for name, found in values.items() if found}
    return result


def spread(questions: Sequence[Question], at_most: int) -> Sequence[Question]:
    """Return up to `at_most` questions: those of facts taken at even distances, so that both directions stay paired."""
    if len(questions) <= at_most:
        return questions
    facts = list(dict.fromkeys(question.fact_id for question in questions))
    kept = max(1, at_most * len(facts) // len(questions))
    chosen = {facts[number * len(facts) // kept] for number in range(kept)}
    return [question for question in questions if question.fact_id in chosen][:at_most]
