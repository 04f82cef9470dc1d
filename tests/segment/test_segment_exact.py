"""Every segmenter gives the text back, and cuts only where a text may be cut."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.config import Segment
from spt.records import Record, writes_no_spaces
from spt.segment import SEGMENTERS, make_segmenter
from spt.segment.legal import legal_cuts
from spt.segment.pipeline import split_long

ODD = [
    "\r\n", "\n\n", " ", "\t", "\u00a0", "\x00", "\x1f", "\u200d", "e\u0301", "👩\u200d🚀",
    "漢字。", "かな", "ไทย", "עברית",
    '"', "“", "”", "(", ")", "'s", "Anna", "Behzad Farahani", "of", "the", "who", "is", ",", ".", "?", "Q:", "1999",
    "x" * 300, "\ud800",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(ODD) | st.text(max_size=6), max_size=30).map("".join)


@functools.cache
def segmenter(name):
    return make_segmenter(Segment(segmenter=name))


def segment(name, *texts):
    return segmenter(name).segment([Record(str(i), text, "test", i) for i, text in enumerate(texts)])


@pytest.mark.parametrize("name", sorted(SEGMENTERS.keys() - {"assistant", "hybrid"}))
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, max_size=4))
def test_units_join_to_the_text_and_are_cut_at_white_space_only(name, texts):
    rows = segment(name, *texts)
    assert [row.id for row in rows] == [str(i) for i in range(len(texts))]
    for text, row in zip(texts, rows, strict=True):
        assert row.text == text
        assert "".join(row.units) == text
        assert row.segmenter == name
        for cut in row.cuts:
            spaced = text[cut].isspace() and not text[cut - 1].isspace()
            assert spaced or writes_no_spaces(text[cut - 1]) or writes_no_spaces(text[cut])
        assert not text.strip() or all(unit.strip() for unit in row.units)
        assert text.strip() or not row.cuts


@given(text=TEXTS, wishes=st.lists(st.integers(0, 400)))
def test_any_wishes_become_legal_cuts_and_legal_cuts_stay(text, wishes):
    cuts = legal_cuts(text, wishes)
    assert list(cuts) == sorted(set(cuts))
    assert all(0 < cut < len(text) for cut in cuts)
    assert legal_cuts(text, cuts) == cuts


def test_white_space_belongs_to_the_later_unit_and_edges_to_their_neighbours():
    assert segment("word", "  Uriah \r\n Hawthorne\u00a0II  ")[0].units == ("  Uriah", " \r\n Hawthorne\u00a0II  ")


def test_script_without_spaces_is_cut_where_the_tokenizer_cuts():
    assert segment("word", "猫が寝る, 犬が走る。")[0].units == ("猫が寝る", ",", " 犬が走る", "。")
    assert segment("word", "two-part, words.")[0].units == ("two-part,", " words.")


@pytest.mark.parametrize("name", ["word", "sentence"])
def test_sentences_are_filled_and_are_units_of_sentence(name):
    row = segment(name, "Anna sings. Bob dances.\n\nCleo paints.")[0]
    assert row.sentences == (0, 11, 23)
    assert name == "word" or row.cuts == row.sentences[1:]


@given(text=st.text(alphabet="ab \n", max_size=80), limit=st.integers(1, 12))
def test_pieces_of_a_long_text_join_and_keep_to_the_limit(text, limit):
    pieces = list(split_long(text, limit))
    assert "".join(piece for _, piece in pieces) == text
    assert all(len(piece) <= limit and text.startswith(piece, start) for start, piece in pieces)


def test_a_text_over_the_limit_is_cut_as_its_paragraphs_are(monkeypatch):
    monkeypatch.setattr("spt.segment.pipeline.PIECE", 150)
    short = "Fallon Huxley initiated the Great Global Reforestation Project. She lives in Lyon."
    one, long = segment("spacy", short, "\n\n".join([short] * 5))
    starts = [(len(short) + 2) * n for n in range(5)]
    assert set(long.cuts) == {start + cut for start in starts for cut in one.cuts} | {start - 2 for start in starts[1:]}
    assert len(long.sentences) == 10


def test_units_do_not_depend_on_the_batch():
    texts = [f"Theodore Sterling number {i} was born in Warsaw, and Ada Lovelace met them." for i in range(300)]
    together = segment("spacy", *texts)
    for i in (0, 255, 256, 299):
        assert segment("spacy", texts[i])[0].cuts == together[i].cuts
