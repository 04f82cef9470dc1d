"""Wished starts of units and sentences → Segmentation: the one place where cuts are made legal."""

from collections.abc import Sequence
from typing import NamedTuple

from spt.records import Record, Segmentation
from spt.segment.legal import legal_cuts


class Found(NamedTuple):
    """What a segmenter read off one piece of a text: offsets in it where units and sentences start, and its names.

    `names` is None for a segmenter that looks for none.
    """

    units: list[int]
    sentences: list[int]
    names: list[tuple[int, int]] | None = None


def build(record: Record, pieces: Sequence[tuple[int, Found]], name: str) -> Segmentation:
    """Return the segmentation of a record.

    `pieces` holds, for each piece of its text, the offset where it begins, and what was found in it.
    """
    units = {begin + start for begin, found in pieces for start in found.units}
    sentences = {begin + start for begin, found in pieces for start in found.sentences}
    names = [(begin + start, begin + end) for begin, found in pieces for start, end in found.names or ()]
    sentence_cuts = legal_cuts(record.text, sentences)
    return Segmentation(
        id=record.id,
        text=record.text,
        cuts=legal_cuts(record.text, units | sentences),
        sentences=(0, *sentence_cuts) if record.text else (),
        segmenter=name,
        completion_start=record.completion_start,
        names=tuple(names) if pieces and pieces[0][1].names is not None else None,
    )
