"""Every metric by its name: the one list that configurations, scores, summaries and reports read.

In: an Answer, which is all that a metric may know of a question. Out: a number, more is better; None where the question
does not ask for it. Trade-off: a metric is a row of this table and never a branch elsewhere, so what is special about
one (its floor, its unit) stands here too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf
from types import MappingProxyType
from typing import Literal

from spt.metrics import match
from spt.metrics.rank import chance_of_rank
from spt.records import IN_NATS, MATCH_RULES


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model made of a question.

    `wordings` are the targets of all questions for the same fact, `logprobs` the (nats, tokens) of each target,
    `distractor_logprobs` the nats of each distractor, `other_logprobs` the same as `logprobs` of each other fact that
    the floor is drawn from (empty: not asked for). `rank` (from 1) is that of the likeliest target among `rivals` wrong
    ones and itself; None where it was not ranked.
    """

    prediction: str
    targets: tuple[str, ...]
    wordings: tuple[str, ...]
    logprobs: tuple[tuple[float, int], ...] = ()
    distractor_logprobs: tuple[float, ...] = ()
    other_logprobs: tuple[tuple[tuple[float, int], ...], ...] = ()
    rank: float | None = None
    rivals: int = 0


Others = Sequence[tuple[str, ...]]
Measure = Callable[[Answer], float | None]
Worth = Callable[[float], float]
Needs = Literal["prediction", "logprobs", "rank"]
Floor = Callable[[Answer, Others], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a question.

    `needs` is what it reads of an Answer. `floor` is what a wrong answer would score (given the targets of other
    facts), or chance; None where neither is known.
    """

    name: str
    needs: Needs
    measure: Measure
    floor: Floor

    @property
    def rule(self) -> str:
        """Return in one line what it measures."""
        return MATCH_RULES[self.name]

    @property
    def unit(self) -> Literal["fraction", "nats"]:
        """Return what its values are counted in."""
        return "nats" if self.name in IN_NATS else "fraction"

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the least and the greatest value there can be."""
        return (-inf, 0.0) if self.unit == "nats" else (0.0, 1.0)


def _of_targets(rule: match.Match, answer: Answer) -> float:
    return float(max((rule(answer.prediction, target) for target in answer.targets), default=0.0))


def _of_wordings(rule: match.Match, answer: Answer) -> float:
    return float(max((rule(answer.prediction, wording) for wording in answer.wordings), default=0.0))


def _logprob(answer: Answer) -> float | None:
    return max((nats for nats, _ in answer.logprobs), default=None)


def _logprob_per_token(answer: Answer) -> float | None:
    return max((nats / max(tokens, 1) for nats, tokens in answer.logprobs), default=None)


def _choice(answer: Answer) -> float | None:
    best = _logprob(answer)
    if best is None or not answer.distractor_logprobs:
        return None
    return float(best > max(answer.distractor_logprobs))


def _of_rank(worth: Worth, answer: Answer) -> float | None:
    return None if answer.rank is None else worth(answer.rank)


def _within(count: int, rank: float) -> float:
    return float(rank <= count)


def _reciprocal(rank: float) -> float:
    return 1 / rank


def _mean_over_others(measure: Measure, answer: Answer, others: Others) -> float | None:
    # Another fact's targets are all its wordings here, so that its best of several faces ours.
    values = [measure(replace(answer, targets=targets, wordings=targets)) or 0.0 for targets in others]
    return sum(values) / len(values) if values else None


def _mean_over_other_logprobs(measure: Measure, answer: Answer, others: Others) -> float | None:
    values = [measure(replace(answer, logprobs=logprobs)) for logprobs in answer.other_logprobs]
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def _chance_of_choice(answer: Answer, others: Others) -> float | None:
    targets, distractors = len(answer.logprobs), len(answer.distractor_logprobs)
    return targets / (targets + distractors) if targets and distractors else None


def _chance_of_rank(worth: Worth, answer: Answer, others: Others) -> float | None:
    return None if answer.rank is None else _expected(worth, len(answer.targets), answer.rivals)


@cache
def _expected(worth: Worth, targets: int, rivals: int) -> float:
    chances = chance_of_rank(targets, rivals)
    return float(sum(chance * worth(rank) for rank, chance in enumerate(chances, start=1)))


def _text(name: str, rule: match.Match) -> Metric:
    measure = partial(_of_targets, rule)
    return Metric(name, "prediction", measure, partial(_mean_over_others, measure))


def _ranked(name: str, worth: Worth) -> Metric:
    return Metric(name, "rank", partial(_of_rank, worth), partial(_chance_of_rank, worth))


def _likelihood(name: str, measure: Measure) -> Metric:
    return Metric(name, "logprobs", measure, partial(_mean_over_other_logprobs, measure))


_stated = partial(_of_wordings, match.states_fact)
_ALL = (
    _text("exact", match.exact),
    _text("startswith", match.startswith),
    _text("contains", match.contains),
    *(_text(f"first_words_{count}", match.first_words(count)) for count in range(1, 10)),
    _text("token_f1", match.token_f1),
    _text("rouge1_recall", match.rouge1_recall),
    Metric("states_fact", "prediction", _stated, partial(_mean_over_others, _stated)),
    _text("bleu", match.bleu),
    _likelihood("logprob", _logprob),
    _likelihood("logprob_per_token", _logprob_per_token),
    Metric("choice", "logprobs", _choice, _chance_of_choice),
    _ranked("mrr", _reciprocal),
    *(_ranked(f"hits_{count}", partial(_within, count)) for count in (1, 5, 10)),
)
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""Every metric by its name, in the order of the tables."""


def measure(answer: Answer, names: Iterable[str]) -> dict[str, float]:
    """Return the named metrics of an answer; one that does not apply to the question is left out."""
    return _present((name, METRICS[name].measure(answer)) for name in names)


def measure_floors(answer: Answer, others: Others, names: Iterable[str]) -> dict[str, float]:
    """Return the floors of the named metrics, given the targets of other facts; one that has none is left out."""
    return _present((name, METRICS[name].floor(answer, others)) for name in names)


def _present(values: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    return {name: value for name, value in values if value is not None}
