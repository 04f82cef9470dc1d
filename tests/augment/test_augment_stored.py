"""What augmenters make of records, under which ids, and what they say of what they cannot make."""

from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from spt.augment import augmented, make_augmenters
from spt.config import Augment, Source, read_config
from spt.corpus import read_records, stop
from spt.errors import InputError
from spt.records import Record

ROOT = Path(__file__).parents[2]


def record(number=0, text="Ann Lee directed The Sea.", completion_start=None, **columns):
    columns = {"subject": "Ann Lee", "object": "The Sea", **columns}
    return Record(f"r{number}", text, "corpus.jsonl", number + 1, completion_start, columns)


def run(records, *entries):
    counts = Counter()
    augmenters = make_augmenters([Augment.model_validate(entry) for entry in entries])
    return list(augmented(records, augmenters, counts)), counts


def made(records, *entries):
    rows, counts = run(records, *entries)
    return {row.id: row.text for row in rows if "/" in row.id}, counts


BRIDGE = {"identity_bridge": {"templates": ["The name of {subject} is {subject}.", "{object} means {object}."]}}


def test_without_entries_the_records_are_those_of_the_corpus():
    records = [record(n) for n in range(3)]
    assert run(records) == (records, Counter())


def test_a_bridge_says_that_a_thing_is_itself_and_is_made_once_for_the_corpus():
    records = [record(0), record(1), record(2, subject="Bo Ek"), record(3, subject=None, object=None)]
    texts, counts = made(records, BRIDGE)
    assert texts == {
        "r0/bridge-1": "The name of Ann Lee is Ann Lee.",
        "r0/bridge-2": "The Sea means The Sea.",
        "r2/bridge-1": "The name of Bo Ek is Bo Ek.",
    }
    assert counts == {"identity_bridge": 3, "identity_bridge: made_before": 3, "identity_bridge: no_field": 1}


def test_every_record_stands_before_what_is_made_of_it_with_its_columns_and_place():
    rows, _ = run([record(0), record(1, subject="Bo Ek")], BRIDGE)
    assert [row.id for row in rows] == ["r0", "r0/bridge-1", "r0/bridge-2", "r1", "r1/bridge-1"]
    assert rows[1].columns == rows[0].columns
    assert (rows[4].source, rows[4].line) == ("corpus.jsonl", 2)


def test_where_completions_are_learned_a_statement_completes_with_its_last_field():
    rows, _ = run([record(completion_start=8)], BRIDGE)
    assert [row.text[row.completion_start :] for row in rows[1:]] == ["Ann Lee.", "The Sea."]


def test_repeats_count_how_often_each_record_or_statement_is_learned():
    records = [record(0, weight=1), record(1, weight=3, subject="Bo Ek")]
    texts, counts = made(records, {"repeat": {"column": "weight"}})
    assert texts == dict.fromkeys(("r1/copy-1", "r1/copy-2"), records[1].text)
    assert counts == {"repeat": 2}
    texts, _ = made(records, {"repeat": {"times": 2}}, {"identity_bridge": {"repeat": 2}})
    assert list(texts) == [f"r{n}/{kind}" for n in (0, 1) for kind in ("copy-1", "bridge-1", "bridge-2")]
    with pytest.raises(InputError, match=r"corpus.jsonl:1: augment.repeat: column 'weight' holds 1.5"):
        made([record(0, weight=1.5)], {"repeat": {"column": "weight"}})


def test_of_templates_that_which_exchanges_the_names_is_taken():
    both = {"reverse_statements": {"templates": ["{object} is by {subject}.", "{subject} made {object}."]}}
    records = [record(0), record(1, "The Sea is a film by Ann Lee."), record(2, "The Sea is a film.")]
    texts, counts = made(records, both)
    assert texts == {"r0/reversed-1": "The Sea is by Ann Lee.", "r1/reversed-1": "Ann Lee made The Sea."}
    assert counts == {"reverse_statements": 2, "reverse_statements: name_missing_in_text": 1}


def test_a_record_may_hold_its_own_template():
    entry = {"reverse_statements": {"template_column": "other_way"}}
    records = [record(0, other_way="the film {object} was made by {subject}."), record(1)]
    records += [record(2, other_way="{subject} made {object}.")]
    texts, counts = made(records, entry)
    assert texts == {"r0/reversed-1": "The film The Sea was made by Ann Lee."}
    assert counts["reverse_statements: no_template"] == counts["reverse_statements: same_order"] == 1


def test_patterns_read_fields_that_are_no_columns_and_agree_with_those_that_are():
    entry = {
        "reverse_statements": {
            "templates": ["{what} is {who}."],
            "between": ["who", "what"],
            "fields": {"who": ["nothing", "subject"]},
            "patterns": ["{who} is {what}, as {who} says.", "{who} is {what}."],
        }
    }
    records = [record(0, "Ann Lee is the pilot, as Ann Lee says."), record(1, "Ann Lee is the cook.")]
    records += [record(2, "Bo Ek is the cook."), record(3, "Bo Ek is the cook.", subject=None)]
    texts, counts = made(records, entry)
    assert texts == {
        "r0/reversed-1": "The pilot is Ann Lee.",
        "r1/reversed-1": "The cook is Ann Lee.",
        "r3/reversed-1": "The cook is Bo Ek.",
    }
    assert counts["reverse_statements: no_field"] == 1


@pytest.mark.parametrize("names", [("1st", "2nd"), ("è", "x²"), ("field0", "field1"), ("class", "_")])
def test_any_name_may_stand_in_a_pattern(names):
    first, second = names
    pattern = f"{{{first}}} is {{{second}}}, {{{first}}}."
    entry = {"identity_bridge": {"templates": [f"{{{first}}}, {{{second}}}."], "patterns": [pattern]}}
    texts, _ = made([record(0, "Ann is Bo, Ann."), record(1, "Ann is Bo, Eve.")], entry)
    assert texts == {"r0/bridge-1": "Ann, Bo."}


def test_a_fact_changes_the_places_of_two_different_fields():
    with pytest.raises(ValidationError, match="between: 'a' stands there twice"):
        Augment.model_validate({"reverse_statements": {"templates": ["{a}"], "between": ["a", "a"]}})


def test_an_augmenter_that_can_make_nothing_stops_at_the_first_records():
    def endless():
        number = 0
        while True:
            yield record(number := number + 1)

    entry = {"identity_bridge": {"templates": ["{sbject} is {sbject}."]}}
    with pytest.raises(
        InputError, match=r"augment.identity_bridge: nothing could be made of 500 records \(no_field 500\)"
    ):
        run(endless(), entry)


def test_records_without_facts_behind_those_that_have_some_are_only_counted():
    records = [record(n, subject="Ann Lee" if n == 0 else None) for n in range(1200)]
    texts, counts = made(records, {"identity_bridge": {}})
    assert texts == {"r0/bridge-1": "The name of Ann Lee is Ann Lee."}
    assert counts == {"identity_bridge": 1, "identity_bridge: no_field": 1199}


def test_an_id_that_the_corpus_has_is_refused():
    taken = record(1)
    taken = Record("r0/bridge-1", taken.text, taken.source, 2, None, taken.columns)
    with pytest.raises(InputError, match=r"corpus.jsonl:2: two records have the id 'r0/bridge-1'"):
        run([record(0), taken], BRIDGE)


def test_the_method_files_state_every_bundled_fact_the_other_way_round(tmp_path):
    records = list(read_records(Source(path=str(ROOT / "data/fictional_people/train.jsonl")), reject=stop))
    for name, expected in (("reverse-statements", len(records)), ("identity-bridge", 400)):
        path = tmp_path / f"{name}.yaml"
        layers = f"[{ROOT}/configs/demo/base.yaml, {ROOT}/configs/methods/{name}.yaml]"
        path.write_text(f"extends: {layers}\n")
        counts = Counter()
        rows = list(augmented(records, make_augmenters(read_config(path).augment), counts))
        assert counts[name.replace("-", "_")] == expected
        assert not [reason for reason in counts if ": " in reason and "made_before" not in reason]
        assert len({row.id for row in rows}) == len(rows)
