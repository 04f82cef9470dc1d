"""The `ngram` segmenter: every `n` words are a unit (Guo et al. 2403.00758, the rival of semantic units).

In: records. Out: the cuts of `word`, every n-th of them, counted anew from the start of each sentence. Trade-off: the
last unit of a sentence may be shorter, so that no unit reaches over a sentence's end.
"""

from collections.abc import Sequence
from dataclasses import replace

from spt.records import Record, Segmentation
from spt.segment.word import WordSegmenter


class NgramSegmenter(WordSegmenter):
    """One unit every `n` words."""

    name = "ngram"

    def __init__(self, n: int) -> None:
        self._n = n

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record."""
        return [replace(row, cuts=self._every_nth(row)) for row in super().segment(records)]

    def _every_nth(self, row: Segmentation) -> tuple[int, ...]:
        sentences = set(row.sentences)
        kept: list[int] = []
        words = 0  # since the last cut
        for cut in row.cuts:
            words += 1
            if words == self._n or cut in sentences:
                kept.append(cut)
                words = 0
        return tuple(kept)
