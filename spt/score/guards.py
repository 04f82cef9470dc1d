"""Did the cure cheat? Six guards beside the accuracies.

    non_reciprocal   "X's mother is Y" was learned; is "Y's mother is X" claimed?     guards.jsonl
    wrong_frame      asked about somebody unknown, does it name somebody known?       guards.jsonl
    echo             is the answer copied from the prompt?                            scores
    leakage          does the training text give the questions away?                  corpus
    fluency, retention   is it still a language model?                                spt.score.language

In: a model, its scores, the set's guards and the corpus. Out: a finding each, for `summary["guards"]`. Trade-off: an
answer counts as a claim by its words alone, so "surely not Ann" claims Ann.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from spt.artifact import dump_json, write_atomically
from spt.benchmark.guards import read_guards
from spt.benchmark.questions import QuestionSet, read_questions
from spt.config import Config
from spt.metrics.text import words
from spt.preprocess.read import read_segmented
from spt.progress import say
from spt.records import Guard, Question, Score
from spt.score import leakage
from spt.score.asked import Asked
from spt.score.corpus import read_openings, segmented_corpus
from spt.score.finding import Finding, finding, not_measured, share_of_facts
from spt.score.language import language_elsewhere, measure_language
from spt.score.phrases import Phrases
from spt.statistics import bootstrap_mean
from spt.statistics.summary import CONTROL

STATED = "stands in the answer's first sentence; case and punctuation ignored"
RULES = {
    "non_reciprocal": f"share of prompts after which the relation is claimed the wrong way round: the name {STATED}",
    "wrong_frame": f"share of prompts about somebody unknown after which a target of any question {STATED}",
    "echo": "share of questions whose answer begins with words copied from the prompt: its first three words (all, "
    "where it has fewer) stand side by side there, and begin no target; case and punctuation ignored",
}
LABELS = {
    "non_reciprocal": "wrong inferences from one-way relations",
    "wrong_frame": "known answers about somebody unknown",
    "echo": "answers copied from the prompt",
}
MARGIN_RULE = (
    "log-probability of the wrong name after the prompt, minus the mean of up to eight names that other guards forbid; "
    "nats: above 0, the wrong inference is likelier than chance"
)
OTHERS = 8
COPIED = 3
"""Words of an answer that are looked for in its prompt."""
_SENTENCE_END = re.compile(r"(?<=\w\w\w[.!?])\s|(?<=[。！？])")


def measure_guards(
    config: Config,
    asked: Asked,
    questions: QuestionSet,
    scores: Iterable[Score],
    *,
    folder: Path,
    local: tuple[Any, Any] | None = None,
) -> dict[str, Any]:
    """Return {"guards", "fluency", "perplexity"} for `summary.json`; every leak goes to `folder`/leakage.jsonl.

    `local` is (model, tokenizer) where the model is on this machine: only there are fluency and retention measured.
    """
    assert config.data.questions is not None
    corpus = segmented_corpus(config)
    found: dict[str, Finding] = {"echo": echo(scores, seed=config.seed)}
    found |= _ask_guards(config, asked)
    found["leakage"] = _leakage(corpus, questions.questions, folder)
    if local is None:
        return {"guards": found | language_elsewhere(), "fluency": None, "perplexity": None}
    count = config.evaluate.fluency_samples
    language = measure_language(
        config,
        *local,
        grammar=questions.grammar,
        prompts=[question.prompt for question in questions.questions],
        openings=read_openings(corpus, count) if corpus is not None and count else [],
    )
    return {**language, "guards": found | language["guards"]}


def echo(scores: Iterable[Score], *, seed: int) -> Finding:
    """Return how many answers are copied from their prompt, over the questions of the headline."""
    read = [(score.question.relation == CONTROL, score.question.fact_id, _copied(score)) for score in scores]
    own = [row for row in read if not row[0]] or read
    facts, copied = [fact for _, fact, _ in own], [example for *_, example in own]
    examples = [example for example in copied if example is not None]
    hits = [example is not None for example in copied]
    return share_of_facts(LABELS["echo"], RULES["echo"], hits, facts, seed=seed, examples=examples)


def _copied(score: Score) -> dict[str, str] | None:
    if not echoes(score.question, score.prediction):
        return None
    return {"question": score.question.id, "prompt": score.question.prompt, "prediction": score.prediction}


def echoes(question: Question, prediction: str) -> bool:
    """Return whether an answer's first words are copied from the prompt, and begin no target."""
    start, prompt = words(prediction)[:COPIED], words(question.prompt)
    if not start or any(words(target)[: len(start)] == start for target in question.targets):
        return False
    return any(prompt[at : at + len(start)] == start for at in range(len(prompt)))


def _ask_guards(config: Config, asked: Asked) -> dict[str, Finding]:
    assert config.data.questions is not None
    path, seed = config.data.questions.place, config.seed
    guards = read_guards(path)
    if guards is None:
        reason = "the set has no guards.jsonl"
        return {kind: not_measured(LABELS[kind], RULES[kind], reason) for kind in ("non_reciprocal", "wrong_frame")}
    kept = min(len(guards), config.evaluate.limit or len(guards))
    guards = tuple(guards[number * len(guards) // kept] for number in range(kept))  # at even distances: of each kind
    say(f"guards: {kept} prompts")
    prompts = [guard.prompt for guard in guards]
    given = asked.generate(prompts, max_new_tokens=config.evaluate.max_new_tokens)
    answers = dict(zip(guards, given, strict=True))
    turned = {guard: text for guard, text in answers.items() if guard.kind == "non_reciprocal"}
    framed = {guard: text for guard, text in answers.items() if guard.kind == "wrong_frame"}
    known = (
        [target for question in read_questions(config.data.questions).questions for target in question.targets]
        if framed
        else []
    )
    found = {
        "non_reciprocal": claims("non_reciprocal", turned, (), seed=seed),
        "wrong_frame": claims("wrong_frame", framed, known, seed=seed),
    }
    if turned and asked.has_log_probabilities:
        found["non_reciprocal"]["margin"] = margin(asked, list(turned), seed=seed)
    return found


def claims(kind: str, answers: dict[Guard, str], known: Sequence[str], *, seed: int) -> Finding:
    """Return how many answers state what is forbidden after their prompt, or one of `known`."""
    if not answers:
        return not_measured(LABELS[kind], RULES[kind], f"the set's guards.jsonl has no {kind} prompts")
    always = set(map(words, known))
    phrases = Phrases([*always, *(words(text) for guard in answers for text in guard.forbidden)])
    hits, examples = [], []
    for guard, answer in answers.items():
        forbidden = always | set(map(words, guard.forbidden))
        stated = [found for _, found in phrases.find(words(first_sentence(answer))) if found in forbidden]
        hits.append(bool(stated))
        if stated:
            examples.append({"guard": guard.id, "prompt": guard.prompt, "prediction": answer})
    facts = [guard.fact_id for guard in answers]
    return share_of_facts(LABELS[kind], RULES[kind], hits, facts, seed=seed, examples=examples)


def first_sentence(answer: str) -> str:
    """Return an answer up to the first stop after a word of three letters or more: initials and titles end nothing."""
    return _SENTENCE_END.split(answer.strip(), maxsplit=1)[0]


def margin(asked: Asked, guards: Sequence[Guard], *, seed: int) -> Finding:
    """Return by how many nats the forbidden continuation is likelier than what other guards forbid."""
    label = "log-probability of the wrong name beside other names"
    pool = sorted({text for guard in guards for text in guard.forbidden})
    groups, kept = [], []
    for guard in guards:
        others = _draw(guard, pool, seed)
        if others:
            groups.append((guard.prompt, (*guard.forbidden, *others)))
            kept.append(guard)
    if not groups:
        return not_measured(label, MARGIN_RULE, "there is no other name to compare with", unit="nats")
    values = []
    for guard, nats in zip(kept, asked.log_probabilities(groups), strict=True):
        own, others_ = nats[: len(guard.forbidden)], nats[len(guard.forbidden) :]
        values.append(max(value for value, _ in own) - sum(value for value, _ in others_) / len(others_))
    infinite = (-float("inf"), float("inf"))
    interval = bootstrap_mean(values, [guard.fact_id for guard in kept], bounds=infinite, seed=seed)
    return finding(
        label, MARGIN_RULE, value=interval.value, low=interval.low, high=interval.high, n=len(values), unit="nats"
    )


def _draw(guard: Guard, pool: Sequence[str], seed: int) -> list[str]:
    others = [text for text in pool if text not in guard.forbidden]
    generator = Random(hashlib.sha256(f"{seed}:{guard.id}".encode()).digest())  # noqa: S311  # reproducible
    return generator.sample(others, min(OTHERS, len(others)))


def _leakage(corpus: Path | None, questions: Sequence[Question], folder: Path) -> Finding:
    if corpus is None:
        return not_measured(leakage.LABEL, leakage.RULE, "there is no segmented corpus to search")
    leaks = list(leakage.find_leaks(read_segmented(corpus), questions))
    rows = "".join(dump_json(leakage.leak_row(leak), indent=None) + "\n" for leak in leaks)
    write_atomically(folder / "leakage.jsonl", rows)
    return leakage.leakage(leaks, questions)
