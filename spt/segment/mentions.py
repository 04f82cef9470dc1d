"""The `mentions` segmenter: the names asked for are units, and so is all text between two of them.

In: records. Out: segmentations cut around each name: the entities with one of the labels, and the names that a column
of the record gives. Punctuation and *'s* stay with the name. Trade-off: with PERSON, two capitalised words without an
article count as a person too, since recognisers miss most invented ones; a corpus that knows its names does better with
a column.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from spt.errors import ConfigError, InputError
from spt.records import Record, Segmentation, writes_no_spaces
from spt.segment import pipeline
from spt.segment.build import Found, build
from spt.segment.gaps import ParsedDoc
from spt.segment.legal import whole_words

if TYPE_CHECKING:
    from spacy.tokens import Doc

_SAME = {"PERSON": "PER", "PER": "PERSON"}
"""spaCy's pipelines of other languages call a PERSON a PER."""


class MentionsSegmenter:
    """Units around names."""

    name = "mentions"

    def __init__(self, pipeline_name: str, labels: Sequence[str], column: str | None) -> None:
        self._pipeline = pipeline.find(pipeline_name)
        self._column = column
        self._labels = {*labels, *(_SAME[label] for label in labels if label in _SAME)}
        self._check_labels(labels)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the pipeline lacks."""
        return self._pipeline.notes

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and the pipeline."""
        return self._pipeline.key()

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record.

        Raises InputError where the column holds something else than names.
        """
        found = pipeline.read_docs(self._pipeline.nlp, [record.text for record in records], self._read)
        return [self._around(record, pieces) for record, pieces in zip(records, found, strict=True)]

    def _check_labels(self, labels: Sequence[str]) -> None:
        known = self._pipeline.labels
        wrong = [label for label in labels if label not in known and _SAME.get(label) not in known]
        if wrong and not (self._column is not None and not known):
            there = f"it has {', '.join(sorted(known))}." if known else "it finds no entities."
            raise ConfigError(
                f"segment.labels: the pipeline {self._pipeline.name} has no label {', '.join(wrong)}; {there} Choose "
                "others, another segment.pipeline, or labels: [] with a names_column."
            )

    def _read(self, doc: "Doc") -> Found:
        parse = ParsedDoc(doc)
        spans = {(lock.start, lock.end) for lock in parse.locks.values() if lock.person and "PERSON" in self._labels}
        for entity in (entity for entity in doc.ents if entity.label_ in self._labels):
            locks = [lock for i in range(entity.start, entity.end) if (lock := parse.locks.get(i))]
            spans.add((locks[0].start, locks[-1].end) if locks else (entity.start, entity.end))
        names = [(doc[start].idx, doc[end - 1].idx + len(doc[end - 1])) for start, end in spans]
        return Found([], parse.starts, names)

    def _around(self, record: Record, pieces: Sequence[tuple[int, Found]]) -> Segmentation:
        names = {(begin + start, begin + end) for begin, found in pieces for start, end in found.names or ()}
        names.update(_occurrences(record, self._column))
        spans = [whole_words(record.text, *name) for name in names]
        inside = {offset for start, end in spans for offset in range(start + 1, end)}
        edges = {edge for span in spans for edge in span} - inside
        sentences = {begin + start for begin, found in pieces for start in found.sentences} - inside
        return build(record, [(0, Found(sorted(edges), sorted(sentences), sorted(names)))], self.name)


def _occurrences(record: Record, column: str | None) -> Iterator[tuple[int, int]]:
    """Yield where the names in a record's column stand in its text, as whole words."""
    value = record.columns.get(column) if column is not None else None
    names = [value] if isinstance(value, str) else value or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{record.source}:{record.line}: segment.names_column {column!r} holds {value!r}; it must be a name, a "
            "list of names, or null"
        )
    for name in filter(None, map(str.strip, names)):
        before = "" if writes_no_spaces(name[0]) else r"(?<!\w)"
        after = "" if writes_no_spaces(name[-1]) else r"(?!\w)"
        yield from (match.span() for match in re.finditer(before + re.escape(name) + after, record.text))
