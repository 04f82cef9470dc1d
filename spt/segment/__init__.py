"""Record → Segmentation: where the units of a text start.

One file a segmenter, and a mapping from names to them; no registry. In: the `segment` section of an experiment. Out:
a `Segmenter`. Trade-off: spaCy is imported when the first text comes, not when a segmenter is made, so that a finished
stage is reused without waiting for it.
"""

from collections.abc import Callable, Mapping

from spt.config import Segment
from spt.segment.assistant_units import AssistantSegmenter
from spt.segment.entity import EntitySegmenter
from spt.segment.hybrid import HybridSegmenter
from spt.segment.mentions import MentionsSegmenter
from spt.segment.ngram import NgramSegmenter
from spt.segment.protocol import Segmenter
from spt.segment.random_words import RandomSegmenter
from spt.segment.sentence import SentenceSegmenter
from spt.segment.spacy_units import SpacySegmenter
from spt.segment.token import TokenSegmenter
from spt.segment.word import WordSegmenter

__all__ = ["SEGMENTERS", "Segmenter", "make_segmenter"]

SEGMENTERS: Mapping[str, Callable[[Segment], Segmenter]] = {
    "spacy": lambda settings: SpacySegmenter(settings.pipeline, fast=settings.fast),
    "word": lambda settings: WordSegmenter(),
    "sentence": lambda settings: SentenceSegmenter(settings.pipeline),
    "token": lambda settings: TokenSegmenter(),
    "ngram": lambda settings: NgramSegmenter(settings.n),
    "entity": lambda settings: EntitySegmenter(settings.pipeline),
    "mentions": lambda settings: MentionsSegmenter(settings.pipeline, settings.labels, settings.names_column),
    "random": lambda settings: RandomSegmenter(),
    "assistant": AssistantSegmenter,
    "hybrid": HybridSegmenter,
}


def make_segmenter(settings: Segment) -> Segmenter:
    """Return the segmenter that `settings` name.

    Raises MissingError where its pipeline is not installed.
    """
    return SEGMENTERS[settings.segmenter](settings)
