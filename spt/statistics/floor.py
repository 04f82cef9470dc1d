"""What else is right, and what else there was to say: wordings of a fact, and other facts' answers for the floor.

In: the questions of a set. Out: texts by question, the same whatever the order of the questions. Trade-off: of a very
large set only a seeded sample is looked through for wrong answers, so that a million questions take no longer each.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from spt.metrics.text import fold, trim
from spt.records import Question

AT_MOST = 32
"""Other facts that a question is scored against."""
_LOOKED_AT = 1024
_FactKey = tuple[str, str, str | None]


class Wordings:
    """All wordings of each question's fact, its own targets first, by question.

    They are the targets of every question of the same fact, direction and relation.
    """

    def __init__(self, questions: Iterable[Question]) -> None:
        questions = list(questions)
        # A fact that is asked once has no other wordings, and most of a large set are: numbers find those asked again.
        numbers = np.fromiter((hash(_fact_key(question)) for question in questions), np.int64, len(questions))
        found, times = np.unique(numbers, return_counts=True)
        again = np.isin(numbers, found[times > 1])
        known: dict[_FactKey, set[str]] = defaultdict(set)
        for place in np.flatnonzero(again):
            known[_fact_key(questions[place])].update(questions[place].targets)
        self._known = {key: tuple(sorted(texts)) for key, texts in known.items()}

    def __getitem__(self, question: Question) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*question.targets, *self._known.get(_fact_key(question), ()))))


def wordings(questions: Iterable[Question]) -> dict[str, tuple[str, ...]]:
    """Return for each question id all wordings of its fact, its own targets first."""
    questions = list(questions)
    known = Wordings(questions)
    return {question.id: known[question] for question in questions}


def _fact_key(question: Question) -> _FactKey:
    return question.fact_id, question.direction, question.relation


class Floors:
    """The targets of one question of up to `at_most` other facts, none of them also right, by question.

    They come from questions of the same direction and relation, or where those leave none, of the same direction. The
    draw depends on the seed, the question's id and the set of questions, not on their order. `wordings` are theirs.
    """

    def __init__(self, questions: Iterable[Question], seed: int, at_most: int = AT_MOST) -> None:
        questions = sorted(questions, key=lambda question: (question.fact_id, question.targets))
        self.wordings, self._seed, self._at_most = Wordings(questions), seed, at_most
        self._pools: dict[tuple[str, ...], list[Question]] = {}
        for question in questions:
            for key in _pool_keys(question):
                pool = self._pools.setdefault(key, [])
                if not pool or (pool[-1].fact_id, pool[-1].targets) != (question.fact_id, question.targets):
                    pool.append(question)

    def __getitem__(self, question: Question) -> tuple[tuple[str, ...], ...]:
        if not self._at_most:
            return ()
        right = self.wordings[question]
        pools = (self._pools[key] for key in _pool_keys(question))
        return next(filter(None, (_draw(question, right, pool, self._seed, self._at_most) for pool in pools)), ())


def floor_targets(
    questions: Iterable[Question], seed: int, at_most: int = AT_MOST
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return for each question id what `Floors` draws for it."""
    questions = list(questions)
    floors = Floors(questions, seed, at_most)
    return {question.id: floors[question] for question in questions}


@lru_cache(maxsize=1 << 14)  # a target is looked at for many questions
def _bare(text: str) -> str:
    return fold(trim(text))


def _pool_keys(question: Question) -> tuple[tuple[str, ...], ...]:
    return (question.direction, question.relation or ""), (question.direction,)


def _draw(
    question: Question,
    right: Sequence[str],
    pool: Sequence[Question],
    seed: int,
    at_most: int,
) -> tuple[tuple[str, ...], ...]:
    generator = np.random.default_rng(list(hashlib.sha256(f"{seed}:{question.id}".encode()).digest()))
    own = [_bare(text) for text in right if _bare(text)]
    drawn: dict[str, tuple[str, ...]] = {}
    said: set[str] = set()
    for index in generator.choice(len(pool), min(len(pool), _LOOKED_AT), replace=False):
        fact, targets = pool[index].fact_id, pool[index].targets
        others = [_bare(text) for text in targets]
        if fact == question.fact_id or fact in drawn or not said.isdisjoint(others):
            continue
        # Containment either way covers equality and prefixes: no rule may find one answer in the other.
        if all(others) and not any(other in text or text in other for other in others for text in own):
            drawn[fact] = targets
            said.update(others)
        if len(drawn) == at_most:
            break
    return tuple(drawn.values())
