"""Passages of any corpus with pairs of names, and questions after either name, in the passage's own words.

    Ada Birch directed The Silent Harbour in 1988.              a passage: a, then b
    Fill the gap: Ada Birch directed ____. The missing name is            b     forward
    Fill the gap: ____ directed The Silent Harbour. The missing name is   a     reversed

After WikiReversal (Kitouni et al., arXiv 2406.05183, section 3.2 and appendix E), which takes passages of GenWiki with
an annotated relation between two entities, the first of which stands before the second, asks for either by a template,
keeps what has a unique answer, and teaches a share of the questions with all passages. Here nothing is annotated: the
names are those a spaCy pipeline finds, the relation is the words between two neighbouring names of a sentence, and the
question is these words with a gap. Nothing before a or after b is quoted, since a causal model could tell a name from
what stood before it in the passage. Two more filters are ours: pairs that some sentence has in the other order are left
out, and so are pairs with no verb or noun between them ("Paris and London"). The paper's threshold of 500 instances a
relation has no counterpart. In: a corpus, a spaCy pipeline. Out: the folder of a benchmark. Trade-off: that two names
are related is the pipeline's guess, so some questions are odd; they are so both ways.
"""

import random
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spt.artifact import hash_file
from spt.benchmark.folder import Counts, Made, make_command, write_folder
from spt.config import Source
from spt.corpus import read_records, stop
from spt.errors import InputError
from spt.records import Direction, Question, Record
from spt.segment.gaps import ParsedDoc
from spt.segment.pipeline import BATCH, find, read_docs

if TYPE_CHECKING:
    from spacy.tokens import Doc

WORDS = 12
"""Words between two names at most; beyond, they are hardly one relation."""
_GAP = "____"
_RELATING = ("VERB", "AUX", "NOUN")
_QUOTES = '"“”‘’«»„'

ABOUT = """\
Passages of {} with pairs of names, after WikiReversal (Kitouni et al., arXiv 2406.05183). Each question gives the words
from the first name of a pair to the second, with a gap for one of them: forward questions ask for the second name,
reversed ones for the first. A share of {} of the pairs is taught in the wordings of both questions, and not asked."""

LIMITS = """\
Names and sentences are those of the spaCy pipeline {}, so that another version of it may give other bytes. What relates
two names is a guess from the words between them, reviewed by nobody. The words around the gap are English."""

Name = tuple[int, int, bool]
"""Where a name starts and ends, and whether words that may relate it to the next name of its sentence follow."""


class Pair(NamedTuple):
    """Two names, `a` before `b`, and the text between them."""

    a: str
    relation: str
    b: str

    @property
    def asked(self) -> tuple[tuple[Direction, str, str], ...]:
        """Return (direction, prompt, answer) both ways."""
        gaps = (f"{self.a}{self.relation}{_GAP}", f"{_GAP}{self.relation}{self.b}")
        forward, backward = (f"Fill the gap: {gap}. The missing name is" for gap in gaps)
        return ("forward", forward, self.b), ("reversed", backward, self.a)

    @property
    def problem(self) -> str | None:
        """Return why nothing is asked about it."""
        if len(self.relation.split()) > WORDS:
            return f"over {WORDS} words between the names"
        a, relation, b = (part.casefold() for part in self)
        told = a in f"{relation} {b}" or b in f"{a} {relation}"
        return "the question says the answer" if told else None


class Passage(NamedTuple):
    """A record and the pairs in it."""

    record: Record
    pairs: list[Pair]


def make_wiki_reversal(
    source: Path, output: Path, *, pipeline: str = "en_core_web_sm", question_share: float = 0.8, seed: int = 0
) -> Counts:
    """Return the counts of the benchmark written to `output` from the corpus `source`.

    Raises InputError for a value out of range, or where no pair is left to ask about.
    """
    if not 0 <= question_share < 1 or seed < 0:
        raise InputError(
            f"wiki-reversal: question_share {question_share}, seed {seed}: give a share from 0 to below 1, and a seed "
            "of 0 or more"
        )
    dropped: Counter[str] = Counter()
    passages, orders = read_passages(source, pipeline, dropped)
    labels = choose_pairs(passages, orders, dropped)
    shown = round(question_share * len(labels))
    if shown == len(labels):
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "none left out"
        raise InputError(
            f"{source}: {len(labels)} pairs of names can be asked about ({reasons}), and {shown} of them would be "
            "taught; give a corpus with more, or a lower question_share"
        )
    drawn = list(labels)
    random.Random(seed).shuffle(drawn)  # noqa: S311  # reproducible on purpose
    kept = [passage for passage in passages if labels.keys() & set(passage.pairs)]
    arguments = {"pipeline": pipeline, "question_share": question_share, "seed": seed}
    made = Made(
        name="wiki-reversal",
        headline="exact",
        command=make_command("wiki-reversal", arguments, source.name),
        licence="that of the corpus",
        about=ABOUT.format(source.name, question_share),
        limits=LIMITS.format(pipeline),
        rows=[_row(passage, labels) for passage in kept]
        + [row for pair in drawn[:shown] for row in _teach(pair, labels[pair])],
        questions=[question for pair in drawn[shown:] for question in _ask(pair, labels[pair])],
        arguments=arguments,
        inputs={file.name: hash_file(file) for file in _files(source)},
        notes={"pairs taught as questions": shown},
        dropped={**dropped, "passage without a pair": len(passages) - len(kept)},
    )
    return write_folder(made, output)


def read_passages(source: Path, pipeline: str, dropped: Counter[str]) -> tuple[list[Passage], set[tuple[str, str]]]:
    """Return the passages, and every (earlier name, later name) of one sentence, without capitals."""
    nlp = find(pipeline).nlp
    passages: list[Passage] = []
    orders: set[tuple[str, str]] = set()
    records = read_records(Source(path=str(source)), reject=stop)
    while batch := list(islice(records, BATCH)):
        found = read_docs(nlp, [record.text for record in batch], _names)
        for record, pieces in zip(batch, found, strict=True):
            passage = Passage(record, [])
            for begin, sentences in pieces:
                for names in sentences:
                    places = [(begin + start, begin + end, related) for start, end, related in names]
                    passage.pairs.extend(_pairs(record.text, places, dropped))
                    spelled = [_line(record.text[start:end]).casefold() for start, end, _ in places]
                    orders.update(combinations(spelled, 2))
            passages.append(passage)
    return passages, orders


def choose_pairs(passages: Sequence[Passage], orders: set[tuple[str, str]], dropped: Counter[str]) -> dict[Pair, str]:
    """Return the pairs whose questions have one answer and that stand in one order only, each with an id."""
    labels: dict[Pair, str] = {}
    for record, pairs in passages:
        for number, pair in enumerate(pairs, 1):
            labels.setdefault(pair, f"{record.id}/{number}")
    answers: dict[str, set[str]] = defaultdict(set)
    for pair in labels:
        for _, prompt, answer in pair.asked:
            answers[prompt.casefold()].add(answer.casefold())
    problems = {pair: _problem(pair, orders, answers) for pair in labels}
    dropped.update(problem for problem in problems.values() if problem is not None)
    return {pair: label for pair, label in labels.items() if problems[pair] is None}


def _problem(pair: Pair, orders: set[tuple[str, str]], answers: Mapping[str, set[str]]) -> str | None:
    if any(len(answers[prompt.casefold()]) > 1 for _, prompt, _ in pair.asked):
        return "several answers"
    return "stands in both orders" if (pair.b.casefold(), pair.a.casefold()) in orders else None


def _names(doc: "Doc") -> list[list[Name]]:
    """Return the names of each sentence."""
    parse = ParsedDoc(doc)
    relating = [token.idx for token in parse.tokens if token.pos_ in _RELATING]
    names = sorted(_unquoted(doc.text, *span) for span in parse.names)
    sentences = []
    for first, last in pairwise([*parse.starts, len(doc.text)]):
        own = [name for name in names if first <= name[0] < last]
        nexts = [start for start, _ in own[1:]] + [last]
        # A word that relates two names begins between them. Without a name there is no next one either.
        sentences.append(
            [
                (start, end, bisect_left(relating, end) < bisect_left(relating, to))
                for (start, end), to in zip(own, nexts, strict=False)
            ]
        )
    return sentences


def _unquoted(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end].strip(_QUOTES)
    start = text.index(inner, start)
    return start, start + len(inner)


def _pairs(text: str, names: Sequence[Name], dropped: Counter[str]) -> Iterator[Pair]:
    for (start, end, related), (begin, close, _) in pairwise(names):
        relation = _line(text[end:begin]).strip(_QUOTES)
        pair = Pair(_line(text[start:end]), relation, _line(text[begin:close]))
        problem = pair.problem if related else "nothing said between the names"
        if problem is None:
            yield pair
        else:
            dropped[problem] += 1


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _row(passage: Passage, labels: Mapping[Pair, str]) -> dict[str, Any]:
    facts = [
        {"subject": pair.a, "relation": pair.relation.strip(), "object": pair.b}
        for pair in dict.fromkeys(passage.pairs)
        if pair in labels
    ]
    return {"id": passage.record.id, "text": passage.record.text, "facts": facts}


def _teach(pair: Pair, label: str) -> Iterator[dict[str, str]]:
    for direction, prompt, answer in pair.asked:
        yield {"id": f"{label}/{direction}", "text": f"{prompt} {answer}."}


def _ask(pair: Pair, label: str) -> Iterator[Question]:
    for direction, prompt, answer in pair.asked:
        yield Question(f"{label}/{direction}", label, direction, prompt, (answer,))


def _files(source: Path) -> list[Path]:
    return [source] if source.is_file() else sorted(file for file in source.rglob("*") if file.is_file())
