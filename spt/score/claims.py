"""Prompts of guards → what a model claims after them and should not.

In: a model and the set's `guards.jsonl`. Out: a finding for each kind of guard. Trade-off: an answer counts as a claim
by its words alone, so "surely not Ann" claims Ann.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from random import Random

from spt.benchmark.guards import KINDS, read_guards
from spt.benchmark.questions import read_questions
from spt.config import Config
from spt.metrics.text import words
from spt.progress import say
from spt.records import Guard
from spt.score.asked import Asked
from spt.score.finding import Finding, finding, not_measured, share_of_totals
from spt.score.phrases import Phrases
from spt.score.served import count_reasons, lost_prompts
from spt.statistics import bootstrap_mean
from spt.statistics.facts import by_fact

STATED = "stands in the answer's first sentence; case and punctuation ignored"
RULES = {
    "non_reciprocal": f"share of prompts after which the relation is claimed the wrong way round: the name {STATED}",
    "wrong_frame": "share of prompts about somebody who is in no text of the corpus after which a target of any "
    f"question {STATED}; to be read beside the baseline's: a model from scratch has no other names and descriptions to "
    "say, so there every method fails, the baseline too",
}
LABELS = {
    "non_reciprocal": "wrong inferences from one-way relations",
    "wrong_frame": "memorised answers about somebody unknown",
}
NAMED_LABEL = "of all its prompts, those after which a memorised name is given"
NAMED_RULE = (
    "as above, for targets that are names (every word begins with a capital letter); no more than the share of prompts "
    "that ask for a name"
)
MARGIN_LABEL = "log-probability of the wrong name beside other names"
MARGIN_RULE = (
    "log-probability of the wrong name after the prompt, minus the mean of up to eight names that other guards forbid; "
    "nats: above 0, the wrong inference is likelier than chance"
)
OTHERS = 8
WINDOW = 50_000
"""Known answers looked for at a time."""
_SENTENCE_END = re.compile(r"(?<=\w\w\w[.!?])\s|(?<=[。！？])")


def ask_guards(config: Config, asked: Asked) -> dict[str, Finding]:
    """Return what each kind of guard found; prompts that a server does not answer are counted beside it."""
    assert config.data.questions is not None
    guards = read_guards(config.data.questions.place)
    if guards is None:
        return {kind: not_measured(LABELS[kind], RULES[kind], "the set has no guards.jsonl") for kind in KINDS}
    kept = min(len(guards), config.evaluate.limit or len(guards))
    guards = tuple(guards[number * len(guards) // kept] for number in range(kept))  # at even distances: of each kind
    say(f"guards: {kept} prompts")
    texts = compared([guard for guard in guards if guard.kind == "non_reciprocal"], config.seed)
    texts = texts if asked.has_log_probabilities else {}
    lost = lost_prompts(asked, [(guard.prompt, texts.get(guard, ())) for guard in guards])
    reasons = {guards[number]: reason for number, reason in lost.items()}
    answered = [guard for guard in guards if guard not in reasons]
    given = asked.generate([guard.prompt for guard in answered], max_new_tokens=config.evaluate.max_new_tokens)
    answers = dict(zip(answered, given, strict=True))
    found = {kind: _of_kind(kind, answers, reasons, config) for kind in KINDS}
    told = {guard: candidates for guard, candidates in texts.items() if guard not in reasons}
    if told:
        found["non_reciprocal"]["margin"] = margin(asked, told, seed=config.seed)
    return found


def _of_kind(kind: str, answers: Mapping[Guard, str], reasons: Mapping[Guard, str], config: Config) -> Finding:
    assert config.data.questions is not None
    own = {guard: text for guard, text in answers.items() if guard.kind == kind}
    lost = count_reasons(reason for guard, reason in reasons.items() if guard.kind == kind)
    if lost and not own:
        figure = not_measured(LABELS[kind], RULES[kind], "the server answered none of its prompts")
    elif kind == "wrong_frame" and own:
        questions = read_questions(config.data.questions).questions
        figure = memorised(own, (target for question in questions for target in question.targets), seed=config.seed)
    else:
        figure = claims(kind, own, (), seed=config.seed)
    return figure | ({"unanswered": lost} if lost else {})


def memorised(answers: Mapping[Guard, str], known: Iterable[str], *, seed: int) -> Finding:
    """Return how many answers about somebody unknown state something known, and beside it how many a known name."""
    stated, has_names = _stated(answers, known)
    figure = claims("wrong_frame", answers, stated, seed=seed)
    if has_names:
        named = claims("wrong_frame", answers, list(filter(_is_name, stated)), seed=seed)
        shown = ("value", "low", "high", "n", "unit")
        figure["named"] = {"label": NAMED_LABEL, "rule": NAMED_RULE, **{key: named[key] for key in shown}}
    return figure


def _stated(answers: Mapping[Guard, str], known: Iterable[str]) -> tuple[list[str], bool]:
    """Return what of all that is known any answer states, and whether any of it is a name."""
    said = [words(first_sentence(answer)) for answer in answers.values()]
    stated, has_names, texts = dict[str, None](), False, iter(known)
    while window := list(islice(texts, WINDOW)):
        phrases = Phrases(map(words, window))
        found = {phrase for text in said for _, phrase in phrases.find(text)}
        stated |= {text: None for text in window if words(text) in found}
        has_names = has_names or any(map(_is_name, window))
    return list(stated), has_names


def _is_name(text: str) -> bool:
    return all(word[0].isupper() for word in text.split())


def claims(kind: str, answers: Mapping[Guard, str], known: Sequence[str], *, seed: int) -> Finding:
    """Return how many answers state, in their first sentence, what their guard forbids, or one of `known`."""
    if not answers:
        return not_measured(LABELS[kind], RULES[kind], f"the set's guards.jsonl has no {kind} prompts")
    always = set(map(words, known))
    phrases = Phrases([*always, *(words(text) for guard in answers for text in guard.forbidden)])
    hits, examples = [], []
    for guard, answer in answers.items():
        forbidden = always | set(map(words, guard.forbidden))
        stated = [found for _, found in phrases.find(words(first_sentence(answer))) if found in forbidden]
        hits.append(float(bool(stated)))
        if stated:
            examples.append({"guard": guard.id, "prompt": guard.prompt, "prediction": answer})
    totals = by_fact(hits, [guard.fact_id for guard in answers])
    return share_of_totals(LABELS[kind], RULES[kind], totals, seed=seed, examples=examples)


def first_sentence(answer: str) -> str:
    """Return an answer up to the first stop after a word of three letters or more: initials and titles end nothing."""
    return _SENTENCE_END.split(answer.strip(), maxsplit=1)[0]


def compared(guards: Sequence[Guard], seed: int) -> dict[Guard, Sequence[str]]:
    """Return what each guard forbids, and behind it what others forbid; a guard without others is left out."""
    pool = sorted({text for guard in guards for text in guard.forbidden})
    drawn = {guard: _draw(guard, pool, seed) for guard in guards}
    return {guard: (*guard.forbidden, *others) for guard, others in drawn.items() if others}


def margin(asked: Asked, texts: Mapping[Guard, Sequence[str]], *, seed: int) -> Finding:
    """Return by how many nats the forbidden continuation is likelier than what other guards forbid (`compared`)."""
    values = []
    groups = [(guard.prompt, candidates) for guard, candidates in texts.items()]
    for guard, nats in zip(texts, asked.log_probabilities(groups), strict=True):
        own, others = nats[: len(guard.forbidden)], nats[len(guard.forbidden) :]
        values.append(max(value for value, _ in own) - sum(value for value, _ in others) / len(others))
    infinite = (-float("inf"), float("inf"))
    interval = bootstrap_mean(values, [guard.fact_id for guard in texts], bounds=infinite, seed=seed)
    return finding(MARGIN_LABEL, MARGIN_RULE, **asdict(interval), n=len(values), unit="nats")


def _draw(guard: Guard, pool: Sequence[str], seed: int) -> list[str]:
    others = [text for text in pool if text not in guard.forbidden]
    generator = Random(hashlib.sha256(f"{seed}:{guard.id}".encode()).digest())  # noqa: S311  # reproducible
    return generator.sample(others, min(OTHERS, len(others)))
