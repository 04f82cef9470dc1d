"""An assistant's statement is believed only where both names stand in it, in the new order."""

from collections import Counter

import pytest
from misbehaving import Script, says, serving

from spt.augment import augmented, make_augmenters
from spt.config import Augment
from spt.errors import InputError
from spt.records import Record

TEXTS = {
    "Ann Lee made The Sea.": ("The Sea", "The Sea was made by Ann Lee."),
    "Ann Lee paints The Sea.": ("The Sea", "Ann Lee paints The Sea."),
    "The Sea, a film of Ann Lee.": ("Ann Lee", "Ann Lee has a film."),
    "Ann Lee wrote The Sea.": ("The Sea", ""),
}


def record(number, text, **columns):
    return Record(f"r{number}", text, "corpus.jsonl", number, 0, {"subject": "Ann Lee", "object": "The Sea", **columns})


def ask(records, tmp_path, script):
    with serving(script) as url:
        assistant = {"backend": "openai", "model": "tiny", "base_url": url, "cache": str(tmp_path)}
        entry = Augment.model_validate({"reverse_statements": {"assistant": assistant}})
        augmenters, counts = make_augmenters([entry]), Counter()
        rows = list(augmented(records, augmenters, counts))
        return rows, counts, augmenters["reverse_statements"].key()


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return Script(**{f"{text} | begin with: {name}": [says(reply)] for text, (name, reply) in TEXTS.items()})


def test_replies_without_both_names_in_the_new_order_are_left_out_and_counted(tmp_path, script):
    records = [record(number, text) for number, text in enumerate(TEXTS)]
    records += [record(8, "Bo Ek made The Sea."), record(9, "Bo Ek made a film.", object=None)]
    rows, counts, key = ask(records, tmp_path, script)
    made = [row for row in rows if "/" in row.id]
    assert [(row.id, row.text) for row in made] == [("r0/reversed-1", "The Sea was made by Ann Lee.")]
    assert made[0].text[made[0].completion_start :] == "Ann Lee."
    assert counts == {
        "reverse_statements": 1,
        "reverse_statements: same_order": 1,
        "reverse_statements: name_missing": 1,
        "reverse_statements: empty": 1,
        "reverse_statements: name_missing_in_text": 1,
        "reverse_statements: no_field": 1,
    }
    assert len(script.requests) == len(TEXTS)
    assert key["model"] == "tiny"


def test_a_corpus_without_fields_is_told_what_is_needed(tmp_path, script):
    with pytest.raises(InputError, match="it needs fields: columns of the corpus"):
        ask([record(0, "Ann Lee made The Sea.", subject=None)], tmp_path, script)
    assert not script.requests
