"""The `spacy` segmenter (the default): names, quoted titles and phrases are units.

In: records. Out: segmentations whose cuts the rules in `rules` decide, gap by gap, over spaCy's parse; what `locks`
finds is never cut. Trade-off: rules over a parse are exact and fast, and as good as the parse.
"""

from collections.abc import Sequence
from typing import Any

from spt.records import Record, Segmentation
from spt.segment import pipeline
from spt.segment.build import build
from spt.segment.rules import find_units


class SpacySegmenter:
    """Units from a spaCy pipeline and rules."""

    name = "spacy"

    def __init__(self, pipeline_name: str) -> None:
        self._pipeline = pipeline.find(pipeline_name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the pipeline lacks."""
        return self._pipeline.notes

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and the pipeline."""
        return self._pipeline.key()

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record."""
        found = pipeline.read_docs(self._pipeline.nlp, [record.text for record in records], find_units)
        return [build(record, pieces, self.name) for record, pieces in zip(records, found, strict=True)]
