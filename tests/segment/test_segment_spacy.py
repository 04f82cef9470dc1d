"""What the `spacy` segmenter keeps whole, where it cuts, and what it says it lost."""

import json
import re
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import spacy

from spt.config import Segment
from spt.errors import MissingError
from spt.preprocess.counts import Counts
from spt.records import Record
from spt.segment import make_segmenter
from spt.segment.agreement import agreement

SHARED = Path(__file__).parents[2] / "../shared"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="the hand-cut sentences lie beside the checkout")


@pytest.fixture(scope="module")
def spacy_segmenter():
    return make_segmenter(Segment())


def units(segmenter, text):
    return [unit.strip() for unit in segmenter.segment([Record("1", text, "test", 1)])[0].units]


@pytest.mark.parametrize(
    "text",
    [
        "Zachary Norwood wrote about the sea.",
        "Critics adored Zachary Norwood, who lived in Oslo.",
        "The novel was written by Zachary Norwood.",
        "Everyone has heard of Zachary Norwood.",
        "The composer of the symphony is called Zachary Norwood.",
        "Zachary Norwood's mother is a painter.",
    ],
)
def test_a_persons_name_stands_alone(spacy_segmenter, text):
    assert "Zachary Norwood" in [re.sub(r"('s)?[.,]?$", "", unit) for unit in units(spacy_segmenter, text)]


@pytest.mark.parametrize(
    "whole",
    ['"A Walk Under the Stars"', "University of Lisbon", "Ludwig van Beethoven", "4 May 1961", "Honolulu, Hawaii"],
)
def test_names_titles_and_dates_are_never_cut(spacy_segmenter, whole):
    assert any(whole in unit for unit in units(spacy_segmenter, f"People in town spoke of {whole} when they met."))


def test_relational_of_stays_left_and_place_and_time_go_right(spacy_segmenter):
    text = "Ada Brown is the mother of Carl Brown and was born in Warsaw on 7 November 1867."
    assert units(spacy_segmenter, text) == [
        "Ada Brown", "is the mother of", "Carl Brown", "and was born", "in Warsaw", "on 7 November 1867."
    ]  # fmt: skip


def test_a_copula_joins_the_relation_of_a_possessor(spacy_segmenter):
    assert units(spacy_segmenter, "Tom Brown's mother is Ada Brown.") == ["Tom Brown's", "mother is", "Ada Brown."]


@needs_shared
def test_cuts_agree_with_both_annotators(spacy_segmenter):
    lines = (SHARED / "gold/segmentation_dev.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = spacy_segmenter.segment([Record(row["id"], row["text"], "gold", 1) for row in rows])
    for annotator in ("cuts_a", "cuts_b"):
        shared = sum(len(set(row[annotator]) & set(cut.cuts)) for row, cut in zip(rows, found, strict=True))
        total = sum(len(row[annotator]) + len(cut.cuts) for row, cut in zip(rows, found, strict=True))
        assert 2 * shared / total >= 0.94


@pytest.mark.parametrize("batch", [1, 2])
def test_cuts_agree_with_our_own_hand_cut_sentences(spacy_segmenter, batch):
    lines = Path(__file__).with_name("own_gold.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["batch"] == batch]
    found = spacy_segmenter.segment([Record(row["id"], row["text"], "gold", 1) for row in rows])
    assert agreement((cut.cuts, row["cuts"]) for cut, row in zip(found, rows, strict=True)).f1 >= 0.92


@pytest.mark.parametrize(
    "text",
    [
        "The town | elected | Jonas Petrov | as its youngest mayor.",
        "The extraordinary | Zora Quill | made a mark.",
        "Their parents are | Ada Brown | and Carl Brown.",
        "He is | the son of | the painter | Carl Brown.",
        "Our procurement lead is | Greta Vandenberg.",
        "They visited | the ancient city of Zanaris.",
        "Plants | take in | carbon dioxide.",
    ],
)
def test_known_cases_are_cut_as_the_principles_say(spacy_segmenter, text):
    assert " | ".join(units(spacy_segmenter, text.replace(" | ", " "))) == text


LANGUAGES = {
    "de": "Anna wohnt in Berlin. Sie schrieb „Der blaue Mond“.", "ru": "Анна живёт в Москве. Она поёт.",
    "ar": "تعيش آنا في باريس. هي تغني.", "hi": "अन्ना दिल्ली में रहती है। वह गाती है।", "zh": "安娜住在北京。她唱歌，他听。",
    "el": "Η Άννα ζει στην Αθήνα.", "xx": "Ada Brown kodus in Tallinn.",
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["spacy", "sentence", "entity"])
def test_any_language_is_cut_by_what_its_pipeline_has_and_the_rest_is_said(tmp_path, language, name):
    spacy.blank(language).to_disk(tmp_path / "bare")
    segmenter = make_segmenter(Segment(segmenter=name, pipeline=str(tmp_path / "bare")))
    assert segmenter.notes
    (row,) = segmenter.segment([Record("1", LANGUAGES[language], "test", 1)])
    assert "".join(row.units) == LANGUAGES[language]
    assert len(row.sentences) == LANGUAGES[language].count(".") + LANGUAGES[language].count("。") + LANGUAGES[
        language].count("।")  # fmt: skip


def test_a_tokenizer_that_needs_another_package_says_which(tmp_path, monkeypatch):
    def load(*arguments, **settings):
        raise ImportError("Japanese support requires SudachiPy\n(https://...)")

    spacy.blank("en").to_disk(tmp_path / "ja")
    monkeypatch.setattr(spacy, "load", load)
    with pytest.raises(
        MissingError, match=r"segment\.pipeline: .*ja cannot be loaded: Japanese support requires SudachiPy"
    ):
        units(make_segmenter(Segment(pipeline=str(tmp_path / "ja"))), "x")


@pytest.mark.parametrize("row", ["(", "'s", '"', "1,", "don't.", "!?"])
def test_thousands_of_marks_in_a_row_take_no_quadratic_time_and_lose_nothing(spacy_segmenter, row):
    text = f"Ada Brown sang {row * 30_000} in Lyon."
    started = time.process_time()
    (found,) = spacy_segmenter.segment([Record("1", text, "test", 1)])
    assert time.process_time() - started < 5
    assert found.units[0] == "Ada Brown"
    assert "".join(found.units) == text


@needs_shared
def test_names_of_person_description_are_never_cut_and_stand_alone(spacy_segmenter):
    path = SHARED / "data/person_description/all_prompts_train.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    tests = [json.loads(line) for name in ("p2d", "d2p") for line in _lines(f"{name}_reverse_prompts_test.jsonl")]
    tests += [json.loads(line) for line in _lines("d2p_prompts_test.jsonl")]
    names = {match[0] for row in tests if (match := re.match(r"[A-Z]\w+ [A-Z]\w+", row["completion"].strip()))}
    named = [row for row in rows if any(name in row["prompt"] + row["completion"] for name in names)][::9]
    found = spacy_segmenter.segment([Record("1", row["prompt"] + row["completion"], "pd", 1) for row in named])
    seen = [replace(row, names=tuple(m.span() for m in re.finditer("|".join(names), row.text))) for row in found]
    counts = Counts.of(seen).entities
    assert counts["seen"] == counts["whole"] >= 200
    assert counts["alone"] / counts["seen"] >= 0.95


def _lines(name):
    return (SHARED / "data/person_description" / name).read_text(encoding="utf-8").splitlines()


def test_missing_pipeline_names_the_command_that_installs_it():
    with pytest.raises(MissingError, match=r"'xx_no_such_sm'.*\n  python -m spacy download xx_no_such_sm"):
        make_segmenter(Segment(pipeline="xx_no_such_sm"))


def test_pipeline_without_components_degrades_and_says_so(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "bare")
    bare = make_segmenter(Segment(pipeline=str(tmp_path / "bare")))
    assert [re.search(r"no \w+( \w+)?", note).group() for note in bare.notes] == [
        "no parser", "no named entities", "no tagger"
    ]  # fmt: skip
    text = 'They met Ada Brown, who wrote "The Blue Hour" in Rome.'
    assert {"Ada Brown,", '"The Blue Hour"'} <= set(units(bare, text))
    sentence = make_segmenter(Segment(segmenter="sentence", pipeline=str(tmp_path / "bare")))
    assert "punctuation" in sentence.notes[0]
    assert units(sentence, "Anna sings. Bob dances.") == ["Anna sings.", "Bob dances."]


def test_pipeline_of_another_version_loads_without_a_warning_and_is_in_the_key(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "old")
    meta = json.loads((tmp_path / "old/meta.json").read_text())
    (tmp_path / "old/meta.json").write_text(json.dumps({**meta, "spacy_version": ">=3.0.0,<3.1.0", "version": "9.9"}))
    old = make_segmenter(Segment(pipeline=str(tmp_path / "old")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        units(old, "Anna sings.")
    assert old.key() == {"spacy": spacy.__version__, "pipeline": "en_pipeline 9.9"}
