"""Faults that were reported of spaCy by people doing this job, and do not happen here."""

import json
from pathlib import Path

import pytest

from spt.config import Segment
from spt.records import Record
from spt.segment import make_segmenter
from spt.segment.pipeline import BATCH

OWN = Path(__file__).with_name("own_gold.jsonl")


@pytest.mark.parametrize("name", ["spacy", "entity", "mentions"])
def test_words_never_seen_before_leave_nothing_behind_in_spacys_store(name):
    segmenter = make_segmenter(Segment(segmenter=name))
    strings = segmenter._pipeline.nlp.vocab.strings
    seen = []
    for start in (0, BATCH, 2 * BATCH):
        texts = [f"Zorvax{number} Quillon{number} wrote blimfest{number}." for number in range(start, start + BATCH)]
        segmenter.segment([Record(text, text, "test", 1) for text in texts])
        seen.append(len(strings))
    assert seen[0] == seen[1] == seen[2]


def test_noun_chunks_never_win_over_the_names_they_overlap():
    texts = [json.loads(line)["text"] for line in OWN.read_text(encoding="utf-8").splitlines()]
    segmenter = make_segmenter(Segment())
    rows = segmenter.segment([Record(text, text, "test", 1) for text in texts])
    kept = 0
    for row, doc in zip(rows, segmenter._pipeline.nlp.pipe(texts), strict=True):
        for name in (entity for entity in doc.ents if entity.label_ in {"PERSON", "ORG", "GPE", "LOC"}):
            start = name.start_char + (len("the ") if name.text.lower().startswith("the ") else 0)
            inside = [cut for cut in row.cuts if start + 1 < cut < name.end_char]
            assert not inside, (row.units, name)
            kept += " " in name.text
    assert kept > 10
