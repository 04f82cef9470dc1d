"""The rivals' segmenters: what a unit is in each, and that no key is set in vain."""

import pytest
import spacy
from pydantic import ValidationError

from spt.config import Segment
from spt.errors import ConfigError, InputError
from spt.records import Record
from spt.segment import make_segmenter

TEXT = 'Tom Brown\'s mother wrote "The Blue Hour" in Lyon. Critics loved Ada Brown, who lived there.'


def units(text=TEXT, columns=None, **settings):
    record = Record("1", text, "facts.jsonl", 7, columns=columns or {})
    return [unit.strip() for unit in make_segmenter(Segment(**settings)).segment([record])[0].units]


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_ngrams_are_n_words_and_end_with_their_sentence(n):
    found = units(segmenter="ngram", n=n)
    assert [len(unit.split()) for unit in found if not unit.endswith((".", "Lyon."))] == [n] * (len(found) - 2)
    assert sum(unit.endswith(".") for unit in found) == 2
    assert " ".join(found) == TEXT


def test_entities_are_whole_and_all_else_is_words():
    assert units(segmenter="entity") == [
        "Tom Brown's", "mother", "wrote", '"The Blue Hour"', "in", "Lyon.", "Critics", "loved", "Ada Brown,", "who",
        "lived", "there.",
    ]  # fmt: skip


def test_mentions_part_the_named_people_from_the_text_between_them():
    assert units(segmenter="mentions") == [
        "Tom Brown's", 'mother wrote "The Blue Hour" in Lyon.', "Critics loved", "Ada Brown,", "who lived there."
    ]  # fmt: skip
    assert units("They lived in London and sang.", segmenter="mentions", labels=["GPE"]) == [
        "They lived in", "London", "and sang."
    ]  # fmt: skip


def test_names_of_a_column_are_mentions_as_whole_words_in_any_script():
    settings = {"segmenter": "mentions", "labels": [], "names_column": "who"}
    assert units("Xo met Xox and xo.", {"who": "Xo"}, **settings) == ["Xo", "met Xox and xo."]
    assert units("Dr. Xo-Li (of Xo) sang.", {"who": ["Xo", "Xo-Li", ""]}, **settings) == [
        "Dr.", "Xo-Li", "(of", "Xo)", "sang."
    ]  # fmt: skip
    assert units("猫のアダさんが来た。", {"who": ["アダ"]}, **settings) == ["猫の", "アダ", "さんが来た。"]
    assert units("Nobody here.", {"who": None}, **settings) == ["Nobody here."]
    with pytest.raises(InputError, match=r"facts\.jsonl:7: segment\.names_column 'who' holds 3; it must be"):
        units("Xo sang.", {"who": 3}, **settings)


def test_a_label_that_the_pipeline_does_not_know_is_refused_with_those_it_knows(tmp_path):
    with pytest.raises(ConfigError, match=r"no label PERSN; it has CARDINAL, .*PERSON"):
        make_segmenter(Segment(segmenter="mentions", labels=["PERSN"]))
    spacy.blank("en").to_disk(tmp_path / "bare")
    with pytest.raises(ConfigError, match="it finds no entities"):
        make_segmenter(Segment(segmenter="mentions", pipeline=str(tmp_path / "bare")))
    settings = {"segmenter": "mentions", "pipeline": str(tmp_path / "bare"), "labels": [], "names_column": "who"}
    assert units("Ada Brown met Xo.", {"who": ["Xo"]}, **settings) == ["Ada Brown met", "Xo."]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"segmenter": "word", "n": 2}, "n: only ngram uses it, not word"),
        ({"segmenter": "word", "pipeline": "de_core_news_sm"}, "pipeline: only spacy"),
        ({"segmenter": "mentions", "fast": True}, "fast: only spacy"),
        ({"segmenter": "spacy", "max_words": 3}, "max_words: only random uses it, not spacy"),
        ({"segmenter": "entity", "names_column": "who"}, "names_column: only mentions"),
        ({"segmenter": "mentions", "labels": []}, "no name would be found"),
    ],
)
def test_a_key_that_the_segmenter_does_not_use_is_refused(settings, said):
    with pytest.raises(ValidationError, match=said):
        Segment(**settings)
    plain = Segment(segmenter=settings["segmenter"])
    assert Segment(**plain.model_dump()) == plain  # a saved experiment, every default spelt out


def test_the_fast_mode_leaves_out_named_entities_and_says_so():
    fast = make_segmenter(Segment(fast=True))
    assert fast.notes == ("The fast mode has no named entities: names are found by their capitals alone.",)
    assert "Ada Brown," in units(fast=True)
    assert "ner" not in fast._pipeline.nlp.pipe_names


def test_names_seen_are_handed_over_with_the_row():
    (row,) = make_segmenter(Segment()).segment([Record("1", "In Lyon. " + TEXT, "test", 1)])
    assert {row.text[start:end] for start, end in row.names} >= {"Tom Brown", '"The Blue Hour"', "Ada Brown"}
    assert make_segmenter(Segment(segmenter="word")).segment([Record("1", TEXT, "test", 1)])[0].names is None
