"""A prediction and one target → how far they agree: pure functions of two strings.

In: a prediction and a target. Out: 1.0 or 0.0 for a rule, a share for an overlap. Trade-off: plain rules that can be
stated in a line each and are printed with every number, rather than one clever rule that nobody can check by eye.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

from spt.metrics.text import fold, trim, words

Match = Callable[[str, str], float]
Take = Callable[[str], Sequence[str]]

STATED = 0.8
"""Share of a wording's content words from which on a prediction states the fact."""
_NOTHING_SHARED = SimpleNamespace(precision=0.0, recall=0.0, fmeasure=0.0)
_ARTICLES = frozenset(("a", "an", "the"))
# Words that carry no content of their own; numbers, negations and `without` do. Another language has none here: all
# of its words then count.
_STOP = frozenset((
    "a", "an", "the", "and", "or", "of", "in", "on", "at", "to", "from", "for", "by", "with", "as", "that", "which",
    "who", "whom", "whose", "this", "these", "those", "it", "its", "he", "his", "him", "she", "her", "they",
    "their", "them", "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "having", "do",
    "does", "did"
))  # fmt: skip


def exact(prediction: str, target: str) -> bool:
    """Return whether the whole prediction is the target, both trimmed, case kept."""
    wanted = trim(target)
    return bool(wanted) and trim(prediction) == wanted


def startswith(prediction: str, target: str) -> bool:
    """Return whether the prediction starts with the target, but for case and white space around it.

    Source: the evaluation of Berglund et al. (2309.12288).
    """
    wanted = fold(target.strip())
    return bool(wanted) and fold(prediction.lstrip()).startswith(wanted)


def contains(prediction: str, target: str) -> bool:
    """Return whether the trimmed target stands anywhere in the prediction, but for case."""
    wanted = fold(trim(target))
    return bool(wanted) and wanted in fold(prediction)


def first_words(count: int) -> Match:
    """Return the rule that the first `count` words of both are the same; all the target's where it has fewer."""
    return partial(_first_words, count)


def _first_words(count: int, prediction: str, target: str) -> bool:
    wanted = words(target)[:count]
    return bool(wanted) and words(prediction)[: len(wanted)] == wanted


def token_f1(prediction: str, target: str) -> float:
    """Return the F1 of the words that both share, each as often as it stands in both; articles left out.

    Source: SQuAD (1606.05250). Deviation: a hyphen separates words, and any script has words.
    """
    return float(_rouge(prediction, target, _without_articles, "rouge1").fmeasure)


def rouge1_recall(prediction: str, target: str) -> float:
    """Return the share of the target's words that stand in the prediction, each as often as it stands in both."""
    return float(_rouge(prediction, target, words, "rouge1").recall)


def states_fact(prediction: str, wording: str) -> bool:
    """Return whether the prediction contains the wording, or recalls STATED of its content words in their order."""
    if contains(prediction, wording):
        return True
    # ROUGE-L's recall is just that: the longest common subsequence as a share of the wording.
    return bool(_rouge(prediction, wording, content_words, "rougeL").recall >= STATED)


def bleu(prediction: str, target: str) -> float:
    """Return sacrebleu's BLEU of one sentence over words, in [0, 1].

    n-gram orders that the prediction is too short for are left out, missing n-grams smoothed exponentially. Over the
    raw string it would be character BLEU, in which a wrong person's description already scores 0.23.
    """
    hypothesis, reference = words(prediction), words(target)
    if set(hypothesis).isdisjoint(reference):
        return 0.0
    score = _sentence_bleu().sentence_score(" ".join(hypothesis), [" ".join(reference)]).score
    # Its sums run a rounding error past 100.
    return min(1.0, float(score) / 100)


def content_words(text: str) -> Sequence[str]:
    """Return the words that are not in the stop list; all of them where it holds every one."""
    found = words(text)
    return [word for word in found if word not in _STOP] or found


def _without_articles(text: str) -> Sequence[str]:
    found = words(text)
    return [word for word in found if word not in _ARTICLES] or found


class _Words:
    """A way of taking words, as rouge-score asks for it: its own knows no letter beyond a-z."""

    def __init__(self, take: Take) -> None:
        self.tokenize = take


def _rouge(prediction: str, target: str, take: Take, kind: str) -> Any:
    if set(take(prediction)).isdisjoint(take(target)):
        return _NOTHING_SHARED  # of most floors, and twenty times as fast
    return _scorer(take, kind).score(target, prediction)[kind]


@cache
def _scorer(take: Take, kind: str) -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # loads nltk, which takes a second and which no report needs

    return RougeScorer([kind], tokenizer=_Words(take))


@cache
def _sentence_bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True, tokenize="none")
