"""The `assistant` segmenter: a language model says where the units of a sentence start.

    record ──▶ sentences (spaCy) ──▶ items ──▶ assistant ──▶ cuts, or spaCy's own where it failed

In: records. Out: segmentations; `segmenter` names what cut the row: `assistant`, `spacy` where every sentence of it
fell back, both where some did. Trade-off: spaCy parses every record, for its sentences and as a fallback, which costs
little beside a language model.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from spt.assistant import Answer, Item, UnitAssistant
from spt.config import Segment
from spt.errors import ConfigError
from spt.records import Record, Segmentation
from spt.segment import pipeline
from spt.segment.build import Found, build
from spt.segment.legal import legal_cuts
from spt.segment.rules import find_units

if TYPE_CHECKING:
    from spacy.tokens import Doc

_ONE_LINE = {ord(sign): " " for sign in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"} | dict.fromkeys(
    range(0xD800, 0xE000), "\ufffd"
)
"""An assistant writes one line of characters that UTF-8 can hold; no offset moves."""


class Parse(NamedTuple):
    """What spaCy says of a piece of text: its own cuts, where words start, and where cuts must not and must be."""

    found: Found
    words: list[int]
    whole: list[int]
    forced: list[int]


@dataclass(frozen=True)
class Plan:
    """A record on its way: spaCy's segmentation, and its items with their offsets."""

    fallback: Segmentation
    items: tuple[tuple[int, Item], ...]


class AssistantSegmenter:
    """Units from a language model."""

    name = "assistant"

    def __init__(self, settings: Segment) -> None:
        if settings.assistant is None:
            raise ConfigError(
                f"segment.assistant: required by the segmenter {self.name}, but missing; give at least its model, such "
                "as {model: HuggingFaceTB/SmolLM2-135M-Instruct}"
            )
        self._pipeline = pipeline.find(settings.pipeline)
        self._assistant = UnitAssistant(settings.assistant)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the pipeline lacks."""
        return self._pipeline.notes

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and the pipeline, and what identifies model, prompt and decoding."""
        return {**self._pipeline.key(), "assistant": self._assistant.key()}

    def counts(self) -> dict[str, Any]:
        """Return requests and cache hits of this process."""
        return self._assistant.counts()

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record; `fallback` names the reasons where a sentence of it fell back."""
        parses = pipeline.read_docs(self._pipeline.nlp, [record.text for record in records], self._read)
        plans = [_plan(record, pieces) for record, pieces in zip(records, parses, strict=True)]
        answers = iter(self._assistant.cut([item for plan in plans for _, item in plan.items]))
        return [self._join(plan, [next(answers) for _ in plan.items]) for plan in plans]

    def _read(self, doc: "Doc") -> Parse:
        return Parse(find_units(doc), [token.idx for token in doc], [], [])

    def _join(self, plan: Plan, answers: Sequence[Answer]) -> Segmentation:
        row = plan.fallback
        cuts = set(row.sentences[1:])
        failures = [answer for answer in answers if isinstance(answer, str)]
        for (start, item), answer in zip(plan.items, answers, strict=True):
            if isinstance(answer, str):
                cuts.update(_between(row.cuts, start, start + len(item.text)))
            else:
                cuts.update(start + cut for cut in answer)
        names = [self.name] * (len(failures) < len(answers) or not answers) + ["spacy"] * bool(failures)
        fallback = ", ".join(sorted(set(failures))) or None
        return replace(row, cuts=tuple(sorted(cuts)), segmenter=", ".join(names), fallback=fallback)


def _plan(record: Record, pieces: Sequence[tuple[int, Parse]]) -> Plan:
    fallback = build(record, [(begin, parse.found) for begin, parse in pieces], "spacy")

    def legal(which: Callable[[Parse], list[int]]) -> tuple[int, ...]:
        return legal_cuts(record.text, (begin + start for begin, parse in pieces for start in which(parse)))

    words, whole = legal(lambda parse: parse.words), legal(lambda parse: parse.whole)
    forced = sorted(set(legal(lambda parse: parse.forced)) - set(whole))
    return Plan(fallback, tuple(_items(fallback, words, whole, forced)))


def _items(
    row: Segmentation, words: Sequence[int], whole: Sequence[int], forced: Sequence[int]
) -> Iterator[tuple[int, Item]]:
    """Yield (offset, item) for each sentence with a word boundary; white space around a sentence is no part of it."""
    for start, end in pairwise((*row.sentences, len(row.text))):
        sentence = row.text[start:end]
        first = start + len(sentence) - len(sentence.lstrip())
        last = start + len(sentence.rstrip())
        inside = [[offset - first for offset in _between(offsets, first, last)] for offsets in (words, whole, forced)]
        if inside[0]:
            text = row.text[first:last].translate(_ONE_LINE)
            yield first, Item(text, tuple(inside[0]), frozenset(inside[1]), frozenset(inside[2]))


def _between(offsets: Sequence[int], start: int, end: int) -> Sequence[int]:
    """Return the offsets (increasing) strictly between two."""
    return offsets[bisect_right(offsets, start) : bisect_left(offsets, end)]
