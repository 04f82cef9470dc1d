"""The method files apply to the corpora that are made here, by the fields that the makers write."""

import json
from collections import Counter
from pathlib import Path

import pytest

from spt.augment import augmented, make_augmenters
from spt.benchmark import make_benchmark, read_questions
from spt.benchmark.person_description import make_person_description
from spt.config import Source, read_config
from spt.corpus import read_records, stop

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "../shared/data/person_description"
MADE = [
    ("bios", {"people": 20, "biographies": 2}),
    ("bios", {"people": 20, "full_names": False, "shuffled": False}),
    ("symbolic", {"pairs": 12}),
    ("non-reciprocal", {"pairs": 3}),
]


def run(method, folder, **fields):
    path = folder / "experiment.yaml"
    path.write_text(f"extends: [{ROOT}/configs/demo/base.yaml, {ROOT}/configs/methods/{method}.yaml]\n")
    records = list(read_records(Source(path=str(folder / "train.jsonl"), **fields), reject=stop))
    counts = Counter()
    rows = list(augmented(records, make_augmenters(read_config(path).augment), counts))
    return records, rows, counts


def facts_of(records):
    return [fact for record in records for fact in record.columns.get("facts") or [record.columns] if "object" in fact]


@pytest.mark.parametrize(("name", "options"), MADE)
def test_every_fact_is_stated_the_other_way_round(name, options, tmp_path):
    make_benchmark(name, tmp_path, **options)
    records, rows, counts = run("reverse-statements", tmp_path)
    made = [row.text for row in rows if "/reversed-" in row.id]
    facts = facts_of(records)
    assert len(made) == len(facts) == counts["reverse_statements"] > 0
    assert {reason for reason in counts if ": " in reason} <= {
        "reverse_statements: no_field"
    }  # questions that are taught
    for text, fact in zip(made, facts, strict=True):
        assert fact["object"] in text
        assert fact["subject"] in text
        assert "{" not in text
    if name == "bios":
        asked = read_questions(tmp_path / "questions.jsonl").questions
        assert not any(text.startswith(question.prompt) for text in made for question in asked)


@pytest.mark.parametrize(("name", "options"), MADE)
def test_every_name_of_a_fact_has_a_bridge(name, options, tmp_path):
    make_benchmark(name, tmp_path, **options)
    records, rows, _ = run("identity-bridge", tmp_path)
    names = {fact[side] for fact in facts_of(records) for side in ("subject", "object")}
    assert {row.text for row in rows if "/bridge-" in row.id} == {f"The name of {name} is {name}." for name in names}


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published files lie in ../shared/data, which is absent")
def test_person_description_is_stated_the_other_way_round_and_bridged(tmp_path):
    make_person_description(PUBLISHED, tmp_path, people=(4, 4, 4))
    fields = {"fields": {"prompt": "prompt", "completion": "completion"}}
    records, rows, counts = run("reverse-statements", tmp_path, **fields)
    assert counts["reverse_statements"] == len(facts_of(records)) > 0.8 * len(records)
    assert counts.keys() == {"reverse_statements", "reverse_statements: no_field"}
    of = {record.id: record for record in records}
    for row in rows:
        if "/reversed-" in row.id:
            source = of[row.id.partition("/")[0]]
            subject, other = source.columns["subject"], source.columns["object"]
            ahead = source.text.index(subject) < source.text.index(other[4:])
            assert row.text == (f"{other[0].upper()}{other[1:]} is {subject}." if ahead else f"{subject} is {other}.")
    _, rows, _ = run("identity-bridge", tmp_path, **fields)
    assert sum("/bridge-" in row.id for row in rows) == 24


def test_passages_of_ones_own_are_bridged_by_the_names_that_were_found(tmp_path):
    (tmp_path / "own.jsonl").write_text(json.dumps({"text": 'Bo Ek founded "The Red Press". Ada Moss met Cy Oak.'}))
    make_benchmark("wiki-reversal", tmp_path, source=tmp_path / "own.jsonl", question_share=0.0)
    _, rows, _ = run("identity-bridge", tmp_path)
    assert {row.text.split(" is ")[1] for row in rows if "/bridge-" in row.id} == {
        "Bo Ek.", "The Red Press.", "Ada Moss.", "Cy Oak.",
    }  # fmt: skip
