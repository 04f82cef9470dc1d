"""Log-probabilities of many candidates → where the right one stands, and where chance would put it.

In: a matrix of log-probabilities, questions by candidates, and which candidates are right. Out: ranks from 1.
Trade-off: a target that is right but is not the likeliest of its question is taken out rather than ranked, so that
several right answers neither help nor hurt each other's rank.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spt.records import Question

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Group = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The distinct targets of all questions of one direction and relation, in the order of their text."""

    texts: tuple[str, ...]

    def among(self, wanted: Iterable[str]) -> Flags:
        """Return which candidates stand in `wanted`: [candidates]."""
        chosen = set(wanted)
        return np.array([text in chosen for text in self.texts], dtype=bool)


def candidates(questions: Iterable[Question]) -> dict[Group, Candidates]:
    """Return what the questions of each (direction, relation) are ranked over."""
    texts: dict[Group, set[str]] = {}
    for question in questions:
        texts.setdefault((question.direction, question.relation), set()).update(question.targets)
    return {group: Candidates(tuple(sorted(members))) for group, members in texts.items()}


def rank_targets(logprobs: Floats, own: Flags, right: Flags) -> tuple[Floats, NDArray[np.int64]]:
    """Return the rank of each question's likeliest target, and the number of rivals it was ranked against.

    All three are [questions, candidates]: log-probabilities in nats; `own`, the question's targets; `right`, all
    that is no wrong answer (the wordings of its fact), and so no rival. A tie counts at the mean of the ranks it spans.
    """
    assert own.any(axis=1).all(), "a question without a target has no rank"
    best = np.where(own, logprobs, -np.inf).max(axis=1, keepdims=True)
    rivals = ~(own | right)
    above, level = ((rivals & found).sum(axis=1) for found in (logprobs > best, logprobs == best))
    return 1 + above + level / 2, rivals.sum(axis=1)


@lru_cache(maxsize=1024)
def chance_of_rank(targets: int, rivals: int) -> Floats:
    """Return the chance of each rank 1 .. rivals + 1 of the likeliest of `targets`, all orders equally likely."""
    # The rank is beyond r where the r likeliest of all are rivals: C(rivals, r) of C(rivals + targets, r) choices.
    likelier = np.arange(rivals)
    beyond = np.cumprod([1.0, *(rivals - likelier) / (rivals + targets - likelier), 0.0])
    return beyond[:-1] - beyond[1:]
