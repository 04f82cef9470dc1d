"""The `sentence` segmenter: every sentence is a unit.

In: records. Out: segmentations cut where the pipeline's parser (or `senter`; else punctuation) ends a sentence.
Trade-off: a record of one sentence is one unit, so no order but the original exists for it.
"""

from typing import TYPE_CHECKING

from spt.segment.build import Found
from spt.segment.spacy_units import SpacySegmenter

if TYPE_CHECKING:
    from spacy.tokens import Doc


class SentenceSegmenter(SpacySegmenter):
    """One unit a sentence."""

    name = "sentence"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return whether sentences come from punctuation alone."""
        if {"parser", "senter"} & set(self._pipeline.components):
            return ()
        return (f"The pipeline {self._pipeline.name} has no parser: sentences come from punctuation.",)

    def read(self, doc: "Doc") -> Found:
        """Return where the sentences of a Doc start."""
        return Found([], [sentence.start_char for sentence in doc.sents])
