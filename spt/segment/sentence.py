"""The `sentence` segmenter: every sentence is a unit.

In: records. Out: segmentations cut where the pipeline's parser (or `senter`; else punctuation) ends a sentence.
Trade-off: a record of one sentence is one unit, so no order but the original exists for it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spt.records import Record, Segmentation
from spt.segment import pipeline
from spt.segment.build import Found, build

if TYPE_CHECKING:
    from spacy.tokens import Doc


class SentenceSegmenter:
    """One unit a sentence."""

    name = "sentence"

    def __init__(self, pipeline_name: str) -> None:
        self._pipeline = pipeline.find(pipeline_name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return whether sentences come from punctuation alone."""
        if {"parser", "senter"} & set(self._pipeline.components):
            return ()
        return (f"The pipeline {self._pipeline.name} has no parser: sentences come from punctuation.",)

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and the pipeline."""
        return self._pipeline.key()

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record."""
        found = pipeline.read_docs(self._pipeline.nlp, [record.text for record in records], _sentences)
        return [build(record, pieces, self.name) for record, pieces in zip(records, found, strict=True)]


def _sentences(doc: "Doc") -> Found:
    return Found([], [sentence.start_char for sentence in doc.sents])
