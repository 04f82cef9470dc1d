"""Wished starts of units and sentences → Segmentation: the one place where cuts are made legal."""

from collections.abc import Sequence

from spt.records import Record, Segmentation
from spt.segment.legal import legal_cuts


def build(record: Record, pieces: Sequence[tuple[int, tuple[list[int], list[int]]]], name: str) -> Segmentation:
    """Return the segmentation of a record.

    `pieces` holds, for each piece of its text, the offset where it begins, and the starts of units and sentences in it.
    """
    units = {begin + start for begin, (starts, _) in pieces for start in starts}
    sentences = {begin + start for begin, (_, starts) in pieces for start in starts}
    sentence_cuts = legal_cuts(record.text, sentences)
    return Segmentation(
        id=record.id,
        text=record.text,
        cuts=legal_cuts(record.text, units | sentences),
        sentences=(0, *sentence_cuts) if record.text else (),
        segmenter=name,
        completion_start=record.completion_start,
    )
