"""The `word` segmenter: every word is a unit.

In: records. Out: segmentations cut at every white space; a script that writes no spaces is cut where spaCy's
language-neutral tokenizer parts it, which is at its punctuation. Needs no installed pipeline. Trade-off: sentences are
guessed from punctuation.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spt.artifact import versions
from spt.records import Record, Segmentation
from spt.segment.build import Found, build
from spt.segment.pipeline import read_docs

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


class WordSegmenter:
    """One unit a word."""

    name = "word"
    notes: tuple[str, ...] = ()

    @cached_property
    def _nlp(self) -> "Language":
        import spacy

        nlp = spacy.blank("xx")
        nlp.add_pipe("sentencizer")
        return nlp

    def key(self) -> dict[str, Any]:
        """Return the version of spaCy, whose tokenizer it uses."""
        return dict(versions("spacy"))

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record."""
        found = read_docs(self._nlp, [record.text for record in records], self.read)
        return [build(record, pieces, self.name) for record, pieces in zip(records, found, strict=True)]

    def read(self, doc: "Doc") -> Found:
        """Return where the words and sentences of a Doc start."""
        return Found([token.idx for token in doc], [sentence.start_char for sentence in doc.sents])
