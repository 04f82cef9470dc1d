"""Person Description (Berglund et al., arXiv 2309.12288, experiment 1) → our corpus, questions and control.

In: the folder of its files, of prompts and completions. Out: every wording of a fact as a target; a control with wrong
answers, without the rows whose answer is right. Trade-off: names are found by their capitals and descriptions by what
follows a name, so that no list of people is needed, and a file that was edited is refused.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spt.benchmark.folder import Counts, Made, hash_inputs, people_flags, read_source, refuse, write_folder
from spt.benchmark.hub import LICENCE
from spt.corpus import Row
from spt.errors import InputError
from spt.records import Direction, Question

TRAIN = {
    "p2d_prompts_train.jsonl": "name_first",
    "d2p_prompts_train.jsonl": "description_first",
    "both_prompts_train.jsonl": "both",
}
TESTS = {
    "p2d_prompts_test.jsonl": "name_first",
    "p2d_reverse_prompts_test.jsonl": "name_first",
    "d2p_prompts_test.jsonl": "description_first",
    "d2p_reverse_prompts_test.jsonl": "description_first",
    "both_prompts_test.jsonl": "both",
}
CONTROLS = {
    "p2d_reverse_prompts_test_randomized.jsonl": "name_first",
    "d2p_reverse_prompts_test_randomized.jsonl": "description_first",
}
FILES = (*TRAIN, *TESTS, *CONTROLS)

_NAME = re.compile(r"[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)+")
_ARTICLE = re.compile(r"\b(?:the|an?)(?= )")
_WORD_END = re.compile(r"(?<=\S)(?= |$)")


@dataclass(frozen=True)
class Line:
    """One row of a file: what is said of whom, and from which side."""

    row: Row
    file: str
    name: str
    name_first: bool
    prompt: str
    completion: str

    @property
    def description(self) -> str:
        """Return the part that holds the description, whichever side it is on."""
        return self.answer if self.name_first else self.prompt

    @property
    def answer(self) -> str:
        """Return the completion without the marks that end it: full stops, `??`, and quotes that the prompt opened."""
        return self.completion.strip().rstrip(".?'")


def read_lines(source: Path) -> tuple[list[Line], dict[str, int]]:
    """Return the rows of every file, exact duplicates within a file left out and counted.

    Raises MissingError or QuestionError.
    """
    rows = [(file, row) for file in FILES for row in read_source(source, file, ("prompt", "completion"))]
    seen: dict[tuple[str, str, str], Row] = {}
    for file, row in rows:
        seen.setdefault((file, row.values["prompt"], row.values["completion"]), row)
    names = {match[0] for _, _, completion in seen if (match := _NAME.match(completion.strip()))}
    lines = []
    for (file, prompt, completion), row in seen.items():
        answered = _NAME.match(completion.strip())
        asked = [name for name in names if name in prompt]
        if not answered and len(asked) != 1:
            raise refuse(row, f"prompt {prompt!r} names {len(asked)} known people, not one")
        name = answered[0] if answered else asked[0]
        lines.append(Line(row, file, name, not answered, prompt, completion))
    return lines, {"exact duplicate": len(rows) - len(seen)}


def collect_wordings(lines: Iterable[Line]) -> dict[str, tuple[str, ...]]:
    """Return every wording of each person's description, the most frequent first."""
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        if line.name_first and line.file not in CONTROLS:
            wordings[line.name][line.answer] += 1
    return {name: tuple(text for text, _ in counter.most_common()) for name, counter in wordings.items()}


def make_question(line: Line, wordings: Mapping[str, Sequence[str]]) -> Question:
    """Return the question of a test row: its own answer first, then every other wording.

    Where a tail follows the name, the name comes first, then the published answer.
    """
    targets = (line.answer, *wordings[line.name]) if line.name_first else (line.name, line.answer)
    half = TESTS[line.file]
    direction: Direction = "forward" if line.name_first == (half != "description_first") else "reversed"
    unique = tuple(dict.fromkeys(targets))
    return Question(line.row.place, line.name, direction, line.prompt, unique, relation=half)


def make_control(lines: Iterable[Line], questions: Iterable[Question]) -> tuple[list[Question], dict[str, int]]:
    """Return the control of these questions, and how many rows a file were left out: their answer is right."""
    asked = {question.prompt: question for question in questions}
    kept: list[Question] = []
    dropped = dict.fromkeys(CONTROLS, 0)
    for line in lines:
        question = asked.get(line.prompt) if line.file in CONTROLS else None
        if question is None:
            continue
        if line.answer in question.targets:
            dropped[line.file] += 1
        else:
            kept.append(replace(question, id=line.row.place, targets=(line.answer,)))
    return kept, {f"right answer in {file}": number for file, number in dropped.items()}


def choose_people(lines: Iterable[Line], people: Sequence[int] | None, seed: int) -> set[str]:
    """Return the names of as many people a half as asked for (name first, description first, both), or of all.

    Raises InputError where a half has fewer.
    """
    names: dict[str, dict[str, None]] = {file: {} for file in TRAIN}
    for line in lines:
        if line.file in TRAIN:
            names[line.file][line.name] = None
    if people is None:
        return {name for known in names.values() for name in known}
    rng = random.Random(seed)  # noqa: S311  # reproducible on purpose
    chosen: set[str] = set()
    for (file, known), size in zip(names.items(), people, strict=True):
        if not 0 <= size <= len(known):
            raise InputError(f"people: {size} of the half {TRAIN[file]} asked for; give 0 to {len(known)}")
        chosen.update(rng.sample(list(known), size))
    if not chosen:
        raise InputError(f"people {people}: nobody is left; ask for at least one")
    return chosen


ABOUT = """\
Person Description of Berglund et al., "The Reversal Curse" (arXiv 2309.12288, experiment 1): invented celebrities and
their deeds in 30 wordings a direction; ten other wordings are held out for the questions. The half `name_first` is
taught from the name (p2d), `description_first` from the description (d2p), `both` from both sides (a control outside
the headline)."""

LIMITS = """\
Descriptions are reworded from template to template, so every wording that follows the name in any file is a target.
Answers in the tests of `both` carry a tail after the name ("... takes it in stride"): the name is the first target,
the published answer another. In the d2p half the name is often followed by such a tail in training too, hence the
`startswith` rule. `subject` is the name, `object` what the person is called ("the pilot of ..."); about one row in nine
words the description otherwise ("piloted ...") and has no `object`. Left out: all_prompts_train.jsonl, which is the
three halves together, and validation_prompts.jsonl, whose answers are first names only."""


def make_person_description(
    source: Path, output: Path, *, people: Sequence[int] | None = None, seed: int = 0
) -> Counts:
    """Return the counts of the benchmark written to `output` from the published files in `source`.

    `people` keeps that many of each half (name first, description first, both), drawn by `seed`. Raises InputError.
    """
    lines, dropped = read_lines(source)
    wordings = collect_wordings(lines)
    chosen = choose_people(lines, people, seed)
    questions = [make_question(line, wordings) for line in lines if line.file in TESTS and line.name in chosen]
    control, rights = make_control(lines, questions)
    flags = "" if people is None else people_flags(people, seed)
    made = Made(
        name="person-description",
        headline="startswith",
        command=f"spt benchmark make person-description --from SOURCE{flags} --output FOLDER",
        licence=LICENCE,
        about=ABOUT,
        limits=LIMITS,
        rows=list(_train_rows(lines, chosen)),
        questions=questions,
        control=control,
        arguments={} if people is None else {"people": list(people), "seed": seed},
        inputs=hash_inputs(source, FILES),
        dropped={**dropped, **rights},
    )
    return write_folder(made, output)


def _train_rows(lines: Sequence[Line], chosen: Container[str]) -> Iterator[dict[str, str]]:
    taught = [line for line in lines if line.file in TRAIN and line.name in chosen]
    phrases = find_phrases(taught)
    for line in taught:
        row = {
            "id": line.row.place,
            "prompt": line.prompt,
            "completion": line.completion,
            "fact_id": line.name,
            "half": TRAIN[line.file],
            "subject": line.name,
        }
        phrase = phrases.get(line.name)
        # A row that words the description otherwise ("directed ...") has no object: it would be no name of anybody.
        yield row | ({"object": phrase} if phrase and phrase in _small_article(line.description) else {})


def find_phrases(lines: Iterable[Line]) -> dict[str, str]:
    """Return what each person is called ("the pilot of ..."), where most of the descriptions say it."""
    texts: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        texts[line.name].append(_small_article(line.description))
    return {name: phrase for name, own in texts.items() if (phrase := _longest_shared(own))}


def _small_article(text: str) -> str:
    """Return a text without the capital of an article that begins it; one inside it may begin a title."""
    return re.sub(r"^(?:The|An?)(?= )", lambda article: article[0].lower(), text)


def _longest_shared(texts: Sequence[str]) -> str:
    """Return the longest phrase from an article to the end of a word that most of the texts hold, or ""."""
    best = ""
    for begun in (text[match.start() :] for text in texts for match in _ARTICLE.finditer(text)):
        for word in _WORD_END.finditer(begun):
            phrase = begun[: word.end()].rstrip(",.:;?!")
            if 2 * sum(phrase in text for text in texts) <= len(texts):
                break
            best = max(best, phrase, key=len)
    return best
