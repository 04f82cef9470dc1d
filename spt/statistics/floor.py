"""What else is right, and what else there was to say: wordings of a fact, and other facts' answers for the floor.

In: the questions of a set. Out: texts by question, the same whatever the order of the questions. Trade-off: of a very
large set only a seeded sample is looked through for wrong answers, so that a million questions take no longer each.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from spt.metrics.text import fold, trim
from spt.records import Question

AT_MOST = 32
"""Other facts that a question is scored against."""
_LOOKED_AT = 1024
_Entry = tuple[str, tuple[str, ...]]  # a fact and the targets of one of its questions


def wordings(questions: Iterable[Question]) -> dict[str, tuple[str, ...]]:
    """Return for each question id all wordings of its fact, its own targets first.

    They are the targets of every question of the same fact, direction and relation.
    """
    questions = list(questions)
    known: dict[tuple[str, str, str | None], set[str]] = defaultdict(set)
    for question in questions:
        known[_fact_key(question)].update(question.targets)
    ordered = {key: sorted(texts) for key, texts in known.items()}
    return {
        question.id: tuple(dict.fromkeys((*question.targets, *ordered[_fact_key(question)]))) for question in questions
    }


def _fact_key(question: Question) -> tuple[str, str, str | None]:
    return question.fact_id, question.direction, question.relation


def floor_targets(
    questions: Iterable[Question], seed: int, at_most: int = AT_MOST
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return for each question id the targets of one question of up to `at_most` other facts, none of them also right.

    They come from questions of the same direction and relation, or where those leave none, of the same direction. The
    draw depends on the seed, the question's id and the set of questions, not on their order.
    """
    questions = list(questions)
    right = wordings(questions)
    pools: dict[tuple[str, ...], set[_Entry]] = defaultdict(set)
    for question in questions:
        for key in _pool_keys(question):
            pools[key].add((question.fact_id, question.targets))
    ordered = {key: sorted(pool) for key, pool in pools.items()}
    bare = {text: fold(trim(text)) for pool in ordered.values() for _, targets in pool for text in targets}
    drawn: dict[str, tuple[tuple[str, ...], ...]] = {}
    for question in questions:
        tries = (_draw(question, right[question.id], ordered[key], bare, seed, at_most) for key in _pool_keys(question))
        drawn[question.id] = next(filter(None, tries), ())
    return drawn


def _pool_keys(question: Question) -> tuple[tuple[str, ...], ...]:
    return (question.direction, question.relation or ""), (question.direction,)


def _draw(
    question: Question,
    right: Sequence[str],
    pool: Sequence[_Entry],
    bare: Mapping[str, str],
    seed: int,
    at_most: int,
) -> tuple[tuple[str, ...], ...]:
    generator = np.random.default_rng(list(hashlib.sha256(f"{seed}:{question.id}".encode()).digest()))
    own = [bare[text] for text in right if bare[text]]
    drawn: dict[str, tuple[str, ...]] = {}
    said: set[str] = set()
    for index in generator.choice(len(pool), min(len(pool), _LOOKED_AT), replace=False):
        fact, targets = pool[index]
        others = [bare[text] for text in targets]
        if fact == question.fact_id or fact in drawn or not said.isdisjoint(others):
            continue
        # Containment either way covers equality and prefixes: no rule may find one answer in the other.
        if all(others) and not any(other in text or text in other for other in others for text in own):
            drawn[fact] = targets
            said.update(others)
        if len(drawn) == at_most:
            break
    return tuple(drawn.values())
