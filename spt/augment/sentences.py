"""The sentences of a passage, each learned alone beside it.

In a passage a name that stands first is copied from there on: only what comes before its first mention teaches who is
meant. A sentence alone, permuted like any other, has to bring the name back from what it says.

In: records of a corpus, some at a time. Out: for each of several sentences these, and the reasons of those that say
nothing alone. Trade-off: whom a sentence means is told by its words, not found out: "She lives there" is left out, "The
company sells lamps" is not.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from spt.augment.facts import Statement
from spt.augment.stored import Made
from spt.config.augment import Sentences
from spt.records import Record
from spt.segment import pipeline
from spt.segment.gaps import ParsedDoc
from spt.segment.legal import legal_cuts

if TYPE_CHECKING:
    from spacy.tokens import Doc


class _Read(NamedTuple):
    """Where sentences, names and personal pronouns start, in characters of a piece of a text."""

    sentences: list[int]
    names: list[int]
    pronouns: list[int]


class Splitter:
    """Each sentence of a record that has several."""

    suffix, once = "sentence", False
    needs = "sentences that name what they are about before any pronoun; without one there is nothing to learn alone"

    def __init__(self, settings: Sentences) -> None:
        self.repeat = settings.repeat
        self._pipeline = pipeline.find(settings.pipeline, ("ner",))

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and the pipeline."""
        return self._pipeline.key()

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return the sentences of each record; none where it is one sentence."""
        found = pipeline.read_docs(self._pipeline.nlp, [record.text for record in records], _read)
        return [list(_sentences(record, pieces)) for record, pieces in zip(records, found, strict=True)]


def _read(doc: "Doc") -> _Read:
    parse = ParsedDoc(doc)
    pronouns = [token.idx for token in parse.tokens if "Prs" in token.morph.get("PronType")]
    return _Read(parse.starts, [start for start, _ in parse.names], pronouns)


def _sentences(record: Record, pieces: Sequence[tuple[int, _Read]]) -> Iterator[Statement | str]:
    starts, names, pronouns = (
        sorted(begin + start for begin, read in pieces for start in read[kind]) for kind in range(len(_Read._fields))
    )
    cuts = legal_cuts(record.text, starts)
    if not cuts:
        return
    for start, end in pairwise((0, *cuts, len(record.text))):
        text = record.text[start:end]
        if record.completion_start is not None and end <= record.completion_start:
            yield "in_prompt"
        elif _next(pronouns, start) < min(_next(names, start), end):
            yield "pronoun_first"
        else:
            begin = start + len(text) - len(text.lstrip())
            yield Statement(text.strip(), max((record.completion_start or 0) - begin, 0))


def _next(sorted_starts: Sequence[int], begin: int) -> float:
    """Return the first of `sorted_starts` from `begin` on, or infinity."""
    place = bisect_left(sorted_starts, begin)
    return sorted_starts[place] if place < len(sorted_starts) else inf
