"""Does the training text give away what the questions ask? Segmentations and questions → leaks.

    asked    a text holds a question's prompt and a target side by side: that wording was taught
    turned   a sentence holds what a fact's forward question asks for, and after it what its reversed one does

In: the corpus in its own order, and the questions. Out: one `Leak` a text and question, and the guard's figure.
Trade-off: words are compared, not meanings, so a paraphrase of a reversed question is not found; nor is the general
text of `data.mix` searched. Some questions are looked for at a time, and the texts read once for each such window.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from sqlite3 import Connection
from typing import Any

from spt.benchmark.question_table import QuestionTable
from spt.metrics.text import split_words, words
from spt.records import Direction, Question, Segmentation
from spt.score.finding import SHOWN, Finding, finding, not_measured
from spt.score.phrases import Phrases, Words
from spt.scratch import open_scratch
from spt.statistics.columns import CONTROL

LABEL = "leakage into the training text"
RULE = (
    "share of reversed questions that the training corpus gives away: a text holds the prompt and a target side by "
    "side (asked), or a sentence holds what a forward question of the fact asks for and after it what the reversed one "
    "does (turned); case, punctuation and white space ignored"
)
FORWARD_RULE = "share of forward questions whose prompt and target stand side by side in the training corpus"

WINDOW = 50_000
"""Questions looked for at a time: about a kilobyte each."""

_Places = Mapping[Words, Sequence[int]]
_LEAKS = "CREATE TABLE leak (number INTEGER, id TEXT, text TEXT, question TEXT, direction TEXT, rule TEXT)"
_ASKED = "CREATE TABLE asked (id TEXT PRIMARY KEY, direction TEXT, control INTEGER, leaked INTEGER) WITHOUT ROWID"


@dataclass(frozen=True, slots=True)
class Leak:
    """A text of the corpus that gives a question away; `rule` is `asked` or `turned`."""

    id: str
    text: str
    question: str
    direction: Direction
    rule: str


@dataclass(frozen=True)
class Wanted:
    """What is looked for: wordings of questions, and by fact what each direction asks for."""

    questions: Sequence[Question]

    @cached_property
    def wordings(self) -> Mapping[Words, Sequence[Question]]:
        """Return the questions by prompt and target in one."""
        found: dict[Words, list[Question]] = defaultdict(list)
        for question in self.questions:
            prompt = split_words(question.prompt)
            for target in map(words, question.targets):
                if prompt and target:
                    found[prompt + target].append(question)
        return found

    @cached_property
    def forward(self) -> Mapping[str, Sequence[Words]]:
        """Return what the forward questions of a fact ask for."""
        found: dict[str, dict[Words, None]] = defaultdict(dict)
        for question in self.questions:
            if question.direction == "forward":
                found[question.fact_id].update(dict.fromkeys(map(words, question.targets)))
        return {fact: tuple(targets) for fact, targets in found.items()}

    @cached_property
    def reverse(self) -> Mapping[Words, Sequence[Question]]:
        """Return the reversed questions by what they ask for."""
        found: dict[Words, list[Question]] = defaultdict(list)
        for question in self.questions:
            if question.direction == "reversed" and question.fact_id in self.forward:
                for target in dict.fromkeys(map(words, question.targets)):
                    found[target].append(question)
        return found


def find_leaks(texts: Iterable[Segmentation], questions: Sequence[Question]) -> Iterator[Leak]:
    """Yield what the texts give away, in their order: each text, question and rule once."""
    with closing(open_scratch(_LEAKS)) as found:
        for window in QuestionTable(questions).by_fact(WINDOW):
            leaks = ((number, *leak_row(leak).values()) for number, leak in _find(texts, window))
            found.executemany("INSERT INTO leak VALUES (?, ?, ?, ?, ?, ?)", leaks)
        ordered = "SELECT id, text, question, direction, rule FROM leak ORDER BY number, rule, question"
        yield from (Leak(*row) for row in found.execute(ordered))


def _find(texts: Iterable[Segmentation], questions: Sequence[Question]) -> Iterator[tuple[int, Leak]]:
    """Yield each leak with the number of its text."""
    wanted = Wanted(questions)
    wordings = Phrases(wanted.wordings)
    terms = Phrases([*wanted.reverse, *(target for targets in wanted.forward.values() for target in targets)])
    for number, segmentation in enumerate(texts):
        spoken, sentence = _read(segmentation)
        asked = {q.id: q for _, phrase in wordings.find(spoken) for q in wanted.wordings[phrase]}
        places: dict[Words, list[int]] = defaultdict(list)
        for start, term in terms.find(spoken):
            places[term].append(start)
        turned = {q.id: q for q in _turned(places, sentence, wanted)}
        for rule, found in (("asked", asked), ("turned", turned)):
            for question in found.values():
                yield number, Leak(segmentation.id, segmentation.text, question.id, question.direction, rule)


def _read(segmentation: Segmentation) -> tuple[Words, list[int]]:
    """Return the words of a text, and for each the number of its sentence."""
    spoken: list[str] = []
    sentence: list[int] = []
    bounds = (*segmentation.sentences, len(segmentation.text))
    for number, (start, end) in enumerate(pairwise(bounds)):
        own = split_words(segmentation.text[start:end])
        spoken += own
        sentence += [number] * len(own)
    return tuple(spoken), sentence


def _turned(places: _Places, sentence: Sequence[int], wanted: Wanted) -> Iterator[Question]:
    for target in places.keys() & wanted.reverse.keys():
        for question in wanted.reverse[target]:
            ahead = [text for text in wanted.forward[question.fact_id] if text in places]
            if any(
                start + len(text) <= later and sentence[start] == sentence[later]
                for text in ahead
                for start in places[text]
                for later in places[target]
            ):
                yield question


def leakage(leaks: Iterable[Leak], questions: Iterable[Question]) -> Finding:
    """Return the guard's figure over the questions of the headline, with those of the control apart."""
    with closing(open_scratch(_ASKED)) as asked:
        rows = ((question.id, question.direction, question.relation == CONTROL) for question in questions)
        asked.executemany("INSERT INTO asked VALUES (?, ?, ?, 0)", rows)
        # Where there is nothing but the control, it is the headline.
        asked.execute("UPDATE asked SET control = 0 WHERE (SELECT min(control) FROM asked) = 1")
        count, examples = _note(leaks, asked)
        figure, forward = _share(asked, "reversed"), _share(asked, "forward")
        control = {way: _share(asked, way, control=True) for way in ("reversed", "forward")}
    if figure["value"] is None:
        return not_measured(LABEL, RULE, "the set asks no reversed questions")
    return finding(
        LABEL, RULE, **figure, low=None, high=None,
        examples=[leak_row(leak) for leak in examples],
        rows=count,
        forward={"rule": FORWARD_RULE, **forward},
        control=control if any(share["n"] for share in control.values()) else None,
    )  # fmt: skip


def _note(leaks: Iterable[Leak], asked: Connection) -> tuple[int, list[Leak]]:
    """Return how many leaks are of the headline, and some of them, reversed ones first, after noting the questions."""
    count = 0
    examples: dict[Direction, list[Leak]] = {"reversed": [], "forward": []}
    for leak in leaks:
        asked.execute("UPDATE asked SET leaked = 1 WHERE id = ?", (leak.question,))
        (control,) = asked.execute("SELECT control FROM asked WHERE id = ?", (leak.question,)).fetchone()
        if not control:
            count += 1
            if len(examples[leak.direction]) < SHOWN:
                examples[leak.direction].append(leak)
    return count, [*examples["reversed"], *examples["forward"]]


def _share(asked: Connection, direction: Direction, *, control: bool = False) -> dict[str, Any]:
    """Return how many questions of a direction leaked, of those of the control or of all others."""
    wanted = "SELECT count(*), ifnull(sum(leaked), 0) FROM asked WHERE direction = ? AND control = ?"
    n, leaked = asked.execute(wanted, (direction, control)).fetchone()
    return {"value": leaked / n if n else None, "n": n, "count": leaked}


def leak_row(leak: Leak) -> dict[str, Any]:
    """Return a leak as one flat JSON object."""
    return {name: getattr(leak, name) for name in Leak.__slots__}
