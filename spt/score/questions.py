"""Questions → scores, chunk by chunk, on one device or many.

The ranks share each chunk; scores travel as objects with their ids and are counted when they meet, so that none is lost
or doubled whatever the number of ranks. Trade-off: ranks wait for each other at the end of a chunk, so a chunk is large
enough for many batches of similar length.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from math import isfinite, nan

import numpy as np
from accelerate import Accelerator
from accelerate.utils import gather_object

from spt.benchmark.question_table import QuestionTable
from spt.config import Evaluate
from spt.errors import WorkError
from spt.metrics import (
    METRICS,
    Answer,
    Candidates,
    Group,
    Others,
    candidates,
    measure,
    measure_floors,
    rank_targets,
)
from spt.progress import track
from spt.records import DIRECTIONS, IN_NATS, Question, Score
from spt.score.asked import Asked
from spt.scratch import open_scratch
from spt.statistics import Floors

CHUNK = 512
"""Questions a rank answers between two writes."""
RANKED_CHUNK = 32
"""The same where each is ranked over all targets of the set."""


def chunk_size(settings: Evaluate, world: int) -> int:
    """Return how many questions are scored between two writes, by all ranks together."""
    return (RANKED_CHUNK if is_ranked(settings) else CHUNK) * world


def is_ranked(settings: Evaluate) -> bool:
    """Return whether a metric asks for ranks: only then is every target of the set tried."""
    return any(METRICS[name].needs == "rank" for name in settings.metrics)


def score_questions(
    asked: Asked,
    questions: Sequence[Question],
    settings: Evaluate,
    *,
    among: Sequence[Question] | None = None,
    seed: int = 0,
    accelerator: Accelerator | None = None,
    label: str = "questions",
) -> list[Score]:
    """Return a score for each question, in order, on every rank.

    `among` is the whole set that the questions are of, whose targets they are ranked over (None: they are the set).
    """
    chunks = score_chunks(asked, questions, settings, among=among, seed=seed, accelerator=accelerator, label=label)
    return [score for chunk in chunks for score in chunk]


def score_chunks(
    asked: Asked,
    questions: Sequence[Question],
    settings: Evaluate,
    *,
    among: Sequence[Question] | None = None,
    seed: int = 0,
    accelerator: Accelerator | None = None,
    label: str = "questions",
    done: int = 0,
) -> Iterator[list[Score]]:
    """Yield the scores of each chunk of questions after the first `done`, in order, on every rank."""
    rank, world = (accelerator.process_index, accelerator.num_processes) if accelerator else (0, 1)
    scorer = Scorer(asked, questions if among is None else among, settings, seed)
    size = chunk_size(settings, world)
    with track(label, len(questions), "questions", done=done) as bar:
        for start in range(done, len(questions), size):
            chunk = questions[start : start + size]
            scores = scorer.score(chunk[rank::world])
            found = {score.question.id: score for score in (gather_object(scores) if world > 1 else scores)}
            missing = [question.id for question in chunk if question.id not in found]
            assert not missing, f"no scores for {missing[:3]} and {len(missing)} in all"
            yield [found[question.id] for question in chunk]
            bar.advance(len(chunk))


class Scorer:
    """Scores some questions of a set at a time; what depends on the whole set is looked up."""

    def __init__(self, asked: Asked, questions: Sequence[Question], settings: Evaluate, seed: int) -> None:
        self.asked, self.settings = asked, settings
        self.floors = Floors(questions, seed, settings.floor_targets)
        self.floors_in_nats = any(name in IN_NATS for name in settings.metrics)
        ranked = is_ranked(settings) and asked.has_log_probabilities
        self.pools: Mapping[Group, Candidates] = candidates(questions) if ranked else {}

    def score(self, questions: Sequence[Question]) -> list[Score]:
        """Return the scores of some of the questions, in order."""
        prompts = [question.prompt for question in questions]
        predictions = self.asked.generate(prompts, max_new_tokens=self.settings.max_new_tokens)
        others = [self.floors[question] for question in questions]
        nats = self._nats(questions, others)
        return [self._score(*row) for row in zip(questions, others, predictions, nats, strict=True)]

    def needs(self, question: Question, others: Others | None = None) -> tuple[str, ...]:
        """Return every text whose log-probability after the prompt a question needs; `others` make its floor."""
        if not self.asked.has_log_probabilities:
            return ()
        pool = self.pools[question.direction, question.relation].texts if self.pools else ()
        others = self.floors[question] if others is None else others
        floor = (text for targets in others for text in targets) if self.floors_in_nats else ()
        return tuple(dict.fromkeys((*question.targets, *question.distractors, *pool, *floor)))

    def _nats(
        self, questions: Sequence[Question], others: Sequence[Others]
    ) -> Sequence[Mapping[str, tuple[float, int]]]:
        """Return (nats, tokens) of everything that a question needs, by its text."""
        if not self.asked.has_log_probabilities:
            return [{}] * len(questions)
        groups = [(one.prompt, self.needs(one, rest)) for one, rest in zip(questions, others, strict=True)]
        found = self.asked.log_probabilities(groups)
        return [dict(zip(texts, values, strict=True)) for (_, texts), values in zip(groups, found, strict=True)]

    def _score(
        self, question: Question, others: Others, prediction: str, nats: Mapping[str, tuple[float, int]]
    ) -> Score:
        best, tokens = max((nats[text] for text in question.targets), default=(nan, 0)) if nats else (nan, 0)
        if nats and not isfinite(best):
            raise WorkError(f"question {question.id!r}: the model's log-probability is {best}; its weights are broken")
        rank, rivals = self._rank(question, nats) if self.pools else (None, 0)
        floor = others if nats and self.floors_in_nats else ()
        # A text that is given twice is one answer: it has one chance to be right.
        targets, distractors = (tuple(dict.fromkeys(texts)) for texts in (question.targets, question.distractors))
        answer = Answer(
            prediction,
            targets,
            self.floors.wordings[question],
            logprobs=tuple(nats[text] for text in targets) if nats else (),
            distractor_logprobs=tuple(nats[text][0] for text in distractors) if nats else (),
            other_logprobs=tuple(tuple(nats[text] for text in other) for other in floor),
            rank=rank,
            rivals=rivals,
        )
        return Score(
            question=question,
            prediction=prediction,
            metrics=measure(answer, self.settings.metrics),
            floors=measure_floors(answer, others, self.settings.metrics),
            logprob=best,
            target_tokens=tokens,
            distractor_logprobs=tuple(nats[text][0] for text in question.distractors) if nats else (),
        )

    def _rank(self, question: Question, nats: Mapping[str, tuple[float, int]]) -> tuple[float, int]:
        pool = self.pools[question.direction, question.relation]
        values = np.array([[nats[text][0] for text in pool.texts]])
        own, right = pool.among(question.targets)[None], pool.among(self.floors.wordings[question])[None]
        ranks, rivals = rank_targets(values, own, right)
        return float(ranks[0]), int(rivals[0])


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
    with closing(open_scratch("CREATE TABLE fact (number INTEGER PRIMARY KEY, id TEXT UNIQUE)")) as facts:
        facts.executemany("INSERT OR IGNORE INTO fact (id) VALUES (?)", ((one.fact_id,) for one in questions))
        (count,) = facts.execute("SELECT count(*) FROM fact").fetchone()
        kept = max(1, at_most * count // len(questions))

        def is_chosen(question: Question) -> bool:
            (number,) = facts.execute("SELECT number - 1 FROM fact WHERE id = ?", (question.fact_id,)).fetchone()
            return bool(-(-number * kept // count) * count // kept == number)

        return QuestionTable(islice(filter(is_chosen, questions), at_most))
