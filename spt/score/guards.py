"""Did the cure cheat? Six guards beside the accuracies.

    non_reciprocal   "X's mother is Y" was learned; is "Y's mother is X" claimed?     spt.score.claims
    wrong_frame      asked about somebody unknown, does it say what it memorised?     spt.score.claims
    echo             is the answer copied from the prompt?                            scores
    leakage          does the training text give the questions away?                  corpus
    fluency, retention   is it still a language model?                                spt.score.language

In: a model, its scores, the set's guards and the corpus. Out: a finding each, for `summary["guards"]`. Trade-off: a
guard that cannot be measured stops nothing; it has a reason where others have a figure.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spt.artifact import dump_json, write_atomically
from spt.benchmark.questions import QuestionSet
from spt.config import Config
from spt.metrics.text import split_words
from spt.preprocess.read import read_segmented
from spt.records import Question, Score, Segmentation
from spt.score import leakage
from spt.score.asked import Asked
from spt.score.claims import ask_guards
from spt.score.corpus import read_openings, segmented_corpus
from spt.score.finding import SHOWN, Finding, not_measured, share_of_totals, take_parts
from spt.score.language import language_elsewhere, measure_language
from spt.statistics.columns import CONTROL
from spt.statistics.fact_rows import FactRows

ECHO_LABEL = "answers copied from the prompt"
ECHO_RULE = (
    "share of questions whose answer begins with words copied from the prompt: its first three words (all, where it "
    "has fewer) stand side by side there, and begin no target; case and punctuation ignored"
)
COPIED = 3
"""Words of an answer that are looked for in its prompt."""


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

    What the guards' figures and the perplexity after training are made of goes to `folder`/parts.jsonl. `local` is
    (model, tokenizer) where the model is on this machine: only there are fluency and retention measured.
    """
    assert config.data.questions is not None
    corpus = segmented_corpus(config)
    found: dict[str, Finding] = {"echo": echo(scores, seed=config.seed)}
    found |= ask_guards(config, asked)
    found["leakage"] = _leakage(corpus, questions.questions, folder)
    if local is None:
        _write_parts(folder, found)
        return {"guards": found | language_elsewhere(), "fluency": None, "perplexity": None}
    count = config.evaluate.fluency_samples
    language = measure_language(
        config,
        *local,
        grammar=questions.grammar,
        prompts=(question.prompt for question in questions.questions),
        openings=read_openings(corpus, count) if corpus is not None and count else [],
    )
    found |= language["guards"]
    _write_parts(folder, found | {"perplexity": language["perplexity"]})
    return {**language, "guards": found}


def _write_parts(folder: Path, figures: Mapping[str, dict[str, Any] | None]) -> None:
    rows = (dump_json(row, indent=None) + "\n" for row in take_parts(figures))
    write_atomically(folder / "parts.jsonl", rows)


def echo(scores: Iterable[Score], *, seed: int) -> Finding:
    """Return how many answers are copied from their prompt, over the questions of the headline."""
    examples: dict[bool, list[dict[str, str]]] = {False: [], True: []}

    def rows() -> Iterator[tuple[str, tuple[float, float]]]:
        for score in scores:
            is_control, copied = score.question.relation == CONTROL, _copied(score)
            if copied is not None and len(examples[is_control]) < SHOWN:
                examples[is_control].append(copied)
            yield score.question.fact_id, (float(is_control), float(copied is not None))

    found = FactRows(rows())
    control = found.where(0, 1.0)
    totals = found.totals(1, ~control if not control.all() else control)
    return share_of_totals(ECHO_LABEL, ECHO_RULE, totals, seed=seed, examples=examples[bool(control.all())])


def _copied(score: Score) -> dict[str, str] | None:
    if not echoes(score.question, score.prediction):
        return None
    return {"question": score.question.id, "prompt": score.question.prompt, "prediction": score.prediction}


def echoes(question: Question, prediction: str) -> bool:
    """Return whether an answer's first words are copied from the prompt, and begin no target."""
    start, prompt = split_words(prediction)[:COPIED], split_words(question.prompt)
    if not start or any(split_words(target)[: len(start)] == start for target in question.targets):
        return False
    return any(prompt[at : at + len(start)] == start for at in range(len(prompt)))


def _leakage(corpus: Path | None, questions: Sequence[Question], folder: Path) -> Finding:
    if corpus is None:
        return not_measured(leakage.LABEL, leakage.RULE, "there is no segmented corpus to search")
    leaks = leakage.find_leaks(_Texts(corpus), questions)
    rows = (dump_json(leakage.leak_row(leak), indent=None) + "\n" for leak in leaks)
    write_atomically(folder / "leakage.jsonl", rows)
    with (folder / "leakage.jsonl").open(encoding="utf-8") as file:
        return leakage.leakage((leakage.Leak(**json.loads(line)) for line in file), questions)


@dataclass(frozen=True)
class _Texts:
    """The texts of a segmented corpus, as often as they are wanted."""

    corpus: Path

    def __iter__(self) -> Iterator[Segmentation]:
        return read_segmented(self.corpus)
