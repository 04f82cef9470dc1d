"""The `entity` segmenter: every word is a unit, and so is every entity (Golovneva et al. 2403.13799).

In: records. Out: segmentations cut at every word that is not inside a lock: a name, a quoted title, a number or date.
Trade-off: what the entity recogniser misses is found by its capitals, as `spacy` does, so that the two keep the same
names whole.
"""

from typing import TYPE_CHECKING

from spt.segment.build import Found
from spt.segment.gaps import ParsedDoc
from spt.segment.spacy_units import SpacySegmenter

if TYPE_CHECKING:
    from spacy.tokens import Doc


class EntitySegmenter(SpacySegmenter):
    """One unit a word or entity."""

    name = "entity"

    def read(self, doc: "Doc") -> Found:
        """Return where words and entities start, and sentences."""
        parse = ParsedDoc(doc)
        inside = {i for i, lock in parse.locks.items() if i > lock.start}
        # The word after a lock is a unit's start as any other: only what is inside a lock is none.
        return Found([token.idx for token in doc if token.i not in inside], parse.starts, parse.names)
