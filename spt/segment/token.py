"""The `token` segmenter: the tokens of the model are the units (Golovneva et al. 2403.13799).

In: records. Out: their sentences; `spt.encode` moves the tokens, since no tokenizer is known here and a token may be
no slice of the text at all. Trade-off: what is stored and counted are sentences.
"""

from typing import TYPE_CHECKING

from spt.segment.build import Found
from spt.segment.word import WordSegmenter

if TYPE_CHECKING:
    from spacy.tokens import Doc


class TokenSegmenter(WordSegmenter):
    """One unit a sentence, until tokens are moved."""

    name = "token"
    notes = ("The segmenter token moves the model's tokens while encoding; what is stored and counted are sentences.",)

    def read(self, doc: "Doc") -> Found:
        """Return where the sentences of a Doc start."""
        return Found([], [sentence.start_char for sentence in doc.sents])
