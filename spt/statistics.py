"""Scores → accuracies with intervals, the gap between the directions, and the floor.

In: scores, and for the floor questions. Out: plain dicts and floats, the same whatever the order of what came in. The
unit of chance is the *fact*: questions of one fact stand and fall together, so facts are resampled with all their
questions. Trade-off: facts with equal totals are drawn as one class with a multinomial count. That has exactly the
distribution of drawing facts one by one and costs a hundredth, but it is less plain to read.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spt.errors import ConfigError
from spt.metrics import METRICS, fold, trim
from spt.records import DIRECTIONS, MATCH_RULES, Question, Score

Floats = NDArray[np.float64]

DRAWS = 10_000
TAIL = 0.025
"""What a 95% interval leaves out on either side."""
CONTROL = "both"
"""The half that was taught both ways: no test of reversal, so outside the headline."""
_MANY_CLASSES = 500
_BLOCK = 2_000_000  # numbers drawn at a time: bounds memory to tens of MB


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate and its 95% interval, fractions of 1."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Forward minus reversed with its 95% interval, the p-value of a paired test, and the facts asked both ways."""

    value: float
    low: float
    high: float
    p_value: float
    n_facts: int


def bootstrap_mean(values: Sequence[float], fact_ids: Sequence[str], *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Return the mean of values in [0, 1] with a percentile bootstrap interval over facts.

    Where all facts are alike (all right, all wrong, or one fact) a bootstrap has no width: the interval is then exact,
    the Clopper-Pearson interval of facts at 0 and 1.
    """
    assert len(values) == len(fact_ids) > 0
    totals = np.array(list(_totals(values, fact_ids).values()))
    means = totals[:, 0] / totals[:, 1]
    value = float(totals[:, 0].sum() / totals[:, 1].sum())
    if np.ptp(means) == 0:
        return Interval(value, *_exact_bounds(value, len(means), lowest=0.0))
    drawn = _resample(totals, draws, seed)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [TAIL, 1 - TAIL])
    return Interval(value, float(low), float(high))


def gap(
    forward: tuple[Sequence[float], Sequence[str]],
    reverse: tuple[Sequence[float], Sequence[str]],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Gap | None:
    """Return forward minus reversed over the facts asked in both directions (None: there is no such fact).

    Each side is (values, fact ids). The bootstrap draws a fact with the questions of both its directions; the p-value
    is two-sided, from a sign-flip permutation test on the facts' differences of means.
    """
    sides = [_totals(*side) for side in (forward, reverse)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    if not shared:
        return None
    totals = np.array([(*sides[0][fact], *sides[1][fact]) for fact in shared])
    differences = totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3]
    value = float(_difference(totals.sum(axis=0, keepdims=True))[0])
    if np.ptp(differences) == 0:
        low, high = _exact_bounds(value, len(shared), lowest=-1.0)
    else:
        low, high = map(float, np.quantile(_difference(_resample(totals, draws, seed)), [TAIL, 1 - TAIL]))
    return Gap(value, low, high, _sign_flip(differences, draws, seed), len(shared))


def _totals(values: Sequence[float], fact_ids: Sequence[str]) -> dict[str, tuple[float, int]]:
    totals: dict[str, tuple[float, int]] = {}
    for value, fact in zip(values, fact_ids, strict=True):
        old_sum, old_count = totals.get(fact, (0.0, 0))
        totals[fact] = (old_sum + value, old_count + 1)
    return totals


def _difference(totals: Floats) -> Floats:
    return totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3]


def _exact_bounds(value: float, n_facts: int, *, lowest: float) -> tuple[float, float]:
    # n facts were all alike. With 97.5% confidence at most this share of all facts is different, and those may lie
    # anywhere in [lowest, 1]. At a rate of 0 or 1 this is Clopper and Pearson's bound.
    different = 1 - TAIL ** (1 / n_facts)
    return value + different * (lowest - value), value + different * (1 - value)


def _resample(totals: Floats, draws: int, seed: int) -> Floats:
    """Return the column sums of `draws` resamples of the rows: [draws, columns]."""
    classes, owner, sizes = np.unique(totals, axis=0, return_inverse=True, return_counts=True)
    generator = np.random.default_rng(seed)
    if len(classes) > _MANY_CLASSES:  # a multinomial over many classes is slower than drawing facts
        facts = (owner[generator.integers(len(owner), size=len(owner))] for _ in range(draws))
        return np.stack([np.bincount(drawn, minlength=len(classes)) @ classes for drawn in facts])
    return np.asarray(generator.multinomial(len(totals), sizes / len(totals), size=draws) @ classes)


def _sign_flip(differences: Floats, draws: int, seed: int) -> float:
    # Facts with the same absolute difference are one class: of its signs a binomial number are positive.
    sizes_of, sizes = np.unique(np.abs(differences), return_counts=True)
    generator = np.random.default_rng([seed, 1])
    observed = abs(differences.sum()) - 1e-9
    block = max(1, _BLOCK // len(sizes))
    count = 0
    for start in range(0, draws, block):
        positive = generator.binomial(sizes, 0.5, size=(min(block, draws - start), len(sizes)))
        count += int((np.abs((2 * positive - sizes) @ sizes_of) >= observed).sum())
    return (count + 1) / (draws + 1)


def floor_targets(questions: Iterable[Question], seed: int, at_most: int = 32) -> dict[str, tuple[str, ...]]:
    """Return for each question id the first target of up to `at_most` other facts, none of them also right.

    They come from questions of the same direction and relation, or where those leave none, of the same direction. The
    draw depends on the seed, the question's id and the set of questions, not on their order.
    """
    questions = list(questions)
    pools: dict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    for question in questions:
        for key in _pool_keys(question):
            pools[key].update((question.fact_id, target) for target in question.targets[:1])
    ordered = {key: sorted(pool) for key, pool in pools.items()}
    return {
        question.id: next(
            filter(None, (_draw(question, ordered[key], seed, at_most) for key in _pool_keys(question))), ()
        )
        for question in questions
    }


def _pool_keys(question: Question) -> tuple[tuple[str, ...], ...]:
    return (question.direction, question.relation or ""), (question.direction,)


def _draw(question: Question, pool: Sequence[tuple[str, str]], seed: int, at_most: int) -> tuple[str, ...]:
    digest = hashlib.sha256(f"{seed}:{question.id}".encode()).digest()
    own = [fold(trim(target)) for target in question.targets]
    drawn: dict[str, str] = {}
    for index in np.random.default_rng(list(digest)).permutation(len(pool)):
        fact, target = pool[index]
        bare = fold(trim(target))
        # Containment either way covers equality and prefixes: no metric may find one answer in the other.
        if fact != question.fact_id and bare and not any(bare in right or right in bare for right in own if right):
            drawn.setdefault(bare, target)
        if len(drawn) == at_most:
            break
    return tuple(drawn.values())


def tested(questions: Sequence[Question]) -> Sequence[Question]:
    """Return the questions of the headline: all but the control's, or all where there is nothing else."""
    return [question for question in questions if question.relation != CONTROL] or questions


def summarise(scores: Sequence[Score], *, headline: str, seed: int) -> dict[str, Any]:
    """Return the accuracies of a run as plain JSON values, fractions of 1; a direction without questions is None.

    The top level is over every relation but `both`, the control (over all, where there is nothing else). Raises
    ConfigError where the headline metric was not measured.
    """
    scores = sorted(scores, key=lambda score: score.question.id)
    measured = {name for score in scores for name in score.metrics}
    names = [name for name in METRICS if name in measured]
    if scores and headline not in names:
        raise ConfigError(
            f"evaluate.headline is {headline!r}, but evaluate.metrics has only {', '.join(names)}; add it"
        )
    relations = sorted({score.question.relation for score in scores if score.question.relation is not None})
    kept = set(tested([score.question for score in scores]))
    headlined = [score for score in scores if score.question in kept]
    return {
        "headline": headline,
        "match_rules": {name: MATCH_RULES[name] for name in names},
        **_directions(headlined, names, seed),
        "gap": _gaps(headlined, names, seed),
        "relations": {
            name: _directions([score for score in scores if score.question.relation == name], names, seed)
            for name in relations
        },
    }


def _directions(scores: Sequence[Score], names: Sequence[str], seed: int) -> dict[str, Any]:
    return {direction: _direction(_of(scores, direction), names, seed) for direction in DIRECTIONS}


def _of(scores: Sequence[Score], direction: str) -> list[Score]:
    return [score for score in scores if score.question.direction == direction]


def _direction(scores: Sequence[Score], names: Sequence[str], seed: int) -> Mapping[str, Any] | None:
    if not scores:
        return None
    facts = [score.question.fact_id for score in scores]
    figures = {
        name: asdict(bootstrap_mean([score.metrics[name] for score in scores], facts, seed=seed))
        | {"floor": _mean([score.floors[name] for score in scores if name in score.floors])}
        for name in names
    }
    return {"n_questions": len(scores), "n_facts": len(set(facts)), **figures}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _gaps(scores: Sequence[Score], names: Sequence[str], seed: int) -> dict[str, Any] | None:
    figures: dict[str, Any] = {}
    for name in names:
        forward, reverse = (
            ([score.metrics[name] for score in side], [score.question.fact_id for score in side])
            for side in (_of(scores, direction) for direction in DIRECTIONS)
        )
        figure = gap(forward, reverse, seed=seed)
        figures[name] = asdict(figure) if figure else None
    return figures if any(figures.values()) else None
