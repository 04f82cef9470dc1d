"""The `random` segmenter: units of random length, drawn anew each epoch (Golovneva et al. 2403.13799).

In: records. Out: the cuts of `word`, which are what its units are made of; `spt.permute` draws the units, from the
seed, the epoch and the record's id. Trade-off: what is stored and counted are words, since no epoch's units are the
units.
"""

from spt.segment.word import WordSegmenter


class RandomSegmenter(WordSegmenter):
    """One unit a word, until units are drawn."""

    name = "random"
    notes = ("The segmenter random draws its units anew each epoch; what is stored and counted here are their words.",)
