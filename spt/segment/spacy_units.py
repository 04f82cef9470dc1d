"""The `spacy` segmenter (the default): names, quoted titles and phrases are units.

In: records. Out: segmentations whose cuts the rules in `rules` decide, gap by gap, over spaCy's parse; what `locks`
finds is never cut. `fast` leaves out the entity recogniser: names are then those that capitals show. Trade-off: rules
over a parse are exact and fast, and as good as the parse.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spt.records import Record, Segmentation
from spt.segment import pipeline
from spt.segment.build import Found, build
from spt.segment.rules import find_units

if TYPE_CHECKING:
    from spacy.tokens import Doc


class SpacySegmenter:
    """Units from a spaCy pipeline and rules."""

    name = "spacy"

    def __init__(self, pipeline_name: str, *, fast: bool = False) -> None:
        self._pipeline = pipeline.find(pipeline_name, ("ner",) if fast else ())

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the pipeline, or the fast mode, lacks."""
        return self._pipeline.notes

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and the pipeline."""
        return self._pipeline.key()

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record."""
        found = pipeline.read_docs(self._pipeline.nlp, [record.text for record in records], self.read)
        return [build(record, pieces, self.name) for record, pieces in zip(records, found, strict=True)]

    def read(self, doc: "Doc") -> Found:
        """Return where the units and sentences of a Doc start, and its names."""
        return find_units(doc)
