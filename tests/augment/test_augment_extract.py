"""Facts that an assistant finds are believed only where the text holds both names; the others are counted by reason."""

from collections import Counter

import pytest
from fakes import byte_level, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from misbehaving import Script, says, serving, status

from spt.assistant.item import Reply
from spt.augment import augmented, make_augmenters
from spt.augment.extract import extract
from spt.augment.facts import find_name
from spt.config import Augment
from spt.config.augment import ReverseStatements
from spt.preprocess.read import stored_entries
from spt.records import Record


class Writes:
    """A writer that answers as told; `None` stands for a reply that failed."""

    def __init__(self, *replies):
        self.replies = [Reply(failure="refused") if text is None else Reply(text=text) for text in replies]

    def write(self, requests):
        self.requests = list(requests)
        return self.replies[: len(requests)]


TEXT = "Ann Lee  made The Sea in Oslo."


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("Ann Lee | made | The Sea", [("Ann Lee", "made", "The Sea")]),
        ("ann lee|made|the sea", [("Ann Lee", "made", "The Sea")]),
        ('1. "Ann Lee" | made | “The Sea”', [("Ann Lee", "made", "The Sea")]),
        ("- Ann Lee | made | 'The Sea.'", [("Ann Lee", "made", "The Sea")]),
        ("Fact: Ann Lee | made | The Sea", [("Ann Lee", "made", "The Sea")]),
        ("Ann Lee | made | The Sea || The Sea | made in | Oslo",
         [("Ann Lee", "made", "The Sea"), ("The Sea", "made in", "Oslo")]),
        ("Ann Lee | made | The Sea || Ann Lee | made | The Lake",
         [("Ann Lee", "made", "The Sea"), "object_missing_in_text"]),
        ("Ann Lee | made | The Sea ||", [("Ann Lee", "made", "The Sea")]),
        (" || ", ["empty"]),
        ("the sea | made by | Ann Lee. || the sea | made in | Oslo.",
         [("The Sea", "made by", "Ann Lee"), ("The Sea", "made in", "Oslo")]),
        ("Ann Lee hat Das Meer gemacht.", ["not_three_parts"]),
        ("Ann Lee | machte | Das Meer", ["object_missing_in_text"]),
        ("安·李 | 制作 | The Sea", ["subject_missing_in_text"]),
        ("Ann Lee | The Sea", ["not_three_parts"]),
        ("Ann Lee |  | The Sea", ["not_three_parts"]),
        ("Ann Lee | is | Ann Lee", ["same_name"]),
        ("Ann | made | Ann Lee", ["same_name"]),
        ("'' | made | The Sea", ["subject_missing_in_text"]),
        ("1. ", ["not_three_parts"]),
        (None, ["refused"]),
    ],
)  # fmt: skip
def test_a_fact_is_two_different_names_of_the_text_spelled_as_there(reply, found):
    (facts,) = extract(Writes(reply), [TEXT])
    assert [fact if isinstance(fact, str) else tuple(fact.values()) for fact in facts] == found


def test_a_text_that_holds_the_separator_is_not_asked_about():
    writer = Writes("Bo | is | here")
    assert extract(writer, ["A | B made C.", "Bo is\nhere."]) == [
        ["separator_in_text"], [{"subject": "Bo", "relation": "is", "object": "here"}],
    ]  # fmt: skip
    assert writer.requests == ["Bo is here."]


@given(st.text(max_size=60), st.lists(st.sampled_from(["Ann Lee", "The Sea", "|", "||", "is", '"', "1.", "Oslo"])))
def test_whatever_a_reply_holds_what_is_believed_stands_in_the_text(noise, words):
    for reply in (noise, " ".join(words)):
        for fact in extract(Writes(reply), [TEXT])[0]:
            if not isinstance(fact, str):
                assert fact["subject"] in " ".join(TEXT.split())
                assert fact["object"] in " ".join(TEXT.split())
                assert fact["subject"] != fact["object"]


def test_a_name_is_found_as_whole_words_before_it_is_found_inside_one():
    assert find_name("Lawson studied Law.", "law") == (15, 18)
    assert find_name("Lawson sang.", "Law") == (0, 3)
    assert find_name("東京は日本の首都です。", "日本") == (3, 5)
    assert find_name("Ann sang.", "Bo") is None


def record(number, text, **columns):
    return Record(f"r{number}", text, "corpus.jsonl", number, None, columns)


def ask(records, entry, tmp_path, monkeypatch, **replies):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    script = Script(**{text: [reply] for text, reply in replies.items()})
    with serving(script) as url:
        server = {"backend": "openai", "model": "tiny", "base_url": url, "cache": str(tmp_path), "max_retries": 0}
        (name,) = entry
        settings = {key: server if value == "SERVER" else value for key, value in entry[name].items()}
        augmenters, counts = make_augmenters([Augment.model_validate({name: settings})]), Counter()
        rows = list(augmented(records, augmenters, counts))
    return [row.text for row in rows if "/" in row.id], counts, script, augmenters[name].key()


RECORDS = [
    record(1, "Ann Lee made The Sea."),
    record(2, "Bo Ek sang in Oslo.", subject="Bo Ek", object="Oslo"),
    record(3, "Nobody knows."),
    record(4, "Cy Oak lives."),
]
REPLIES = {
    "Ann Lee made The Sea.": says("Ann Lee | made | The Sea"),
    "Nobody knows.": says(""),
    "Cy Oak lives.": status(400),
}
BRIDGE = {"identity_bridge": {"templates": ["{subject} is {subject}.", "{object} is {object}."], "extract": "SERVER"}}


def test_only_records_without_the_fields_are_asked_about_and_nothing_twice(tmp_path, monkeypatch):
    texts, counts, script, key = ask(RECORDS, BRIDGE, tmp_path, monkeypatch, **REPLIES)
    assert texts == ["Ann Lee is Ann Lee.", "The Sea is The Sea.", "Bo Ek is Bo Ek.", "Oslo is Oslo."]
    assert counts == {"identity_bridge": 4, "identity_bridge: empty": 1, "identity_bridge: refused": 1}
    assert len(script.requests) == 3
    assert key["extract"]["model"] == "tiny"
    again, _, script, _ = ask(RECORDS[:3], BRIDGE, tmp_path, monkeypatch, **REPLIES)
    assert (again, len(script.requests)) == (texts, 0)


def test_a_fact_that_was_found_is_stated_the_other_way_round_by_a_template(tmp_path, monkeypatch):
    entry = {"reverse_statements": {"templates": ["{object} has to do with {subject}."], "extract": "SERVER"}}
    texts, counts, _, _ = ask(RECORDS, entry, tmp_path, monkeypatch, **REPLIES)
    assert texts == ["The Sea has to do with Ann Lee.", "Oslo has to do with Bo Ek."]
    assert counts["reverse_statements: empty"] == counts["reverse_statements: refused"] == 1


def test_a_fact_that_was_found_is_stated_the_other_way_round_by_the_assistant(tmp_path, monkeypatch):
    entry = {"reverse_statements": {"assistant": "SERVER", "extract": "SERVER"}}
    stated = {
        "Ann Lee made The Sea. | begin with: The Sea": says("The Sea was made by Ann Lee."),
        "Bo Ek sang in Oslo. | begin with: Oslo": says("Oslo heard someone sing."),
    }
    texts, counts, _, key = ask(RECORDS, entry, tmp_path, monkeypatch, **REPLIES, **stated)
    assert texts == ["The Sea was made by Ann Lee."]
    assert counts["reverse_statements: name_missing"] == 1
    assert key["prompt"] != key["extract"]["prompt"]


def test_a_model_in_this_process_is_asked_as_a_server_is(tmp_path):
    folder = tmp_path / "tiny"
    tiny_model("llama", byte_level(), seed=1, max_position_embeddings=2048).save_pretrained(folder)
    byte_level().save_pretrained(folder)
    local = {"model": str(folder), "cache": str(tmp_path / "cache"), "max_new_tokens": 8}
    entry = Augment.model_validate({"identity_bridge": {"extract": local}})
    counts = Counter()
    rows = list(augmented(RECORDS[:2], make_augmenters([entry]), counts))
    assert [row.text for row in rows if "/" in row.id] == ["The name of Bo Ek is Bo Ek."]
    assert sum(counts.values()) == 2  # of noise, nothing is believed


def test_who_finds_facts_is_part_of_the_augmenters_key_and_not_of_the_settings():
    entry = Augment.model_validate({"identity_bridge": {"extract": {"model": "a"}}})
    other = Augment.model_validate({"identity_bridge": {"extract": {"model": "b"}}})
    assert stored_entries([entry]) == stored_entries([other]) == stored_entries([Augment(identity_bridge={})])


def test_a_record_states_several_facts_each_with_its_own_template():
    facts = [
        {"subject": "Ann Lee", "object": "Oslo", "other_way": "{object} is home to {subject}."},
        {"subject": "Ann Lee", "object": "Law"},
        {"subject": "Ann Lee"},
    ]
    settings = {"template_column": "other_way", "templates": ["{object} is of {subject}, the {job}."]}
    entries = [Augment.model_validate({"reverse_statements": settings}), Augment.model_validate(
        {"identity_bridge": {"templates": ["{object}: {object}"]}}
    )]  # fmt: skip
    counts = Counter()
    one = record(1, "Ann Lee lives in Oslo. She studied Law.", facts=facts, job="judge")
    rows = list(augmented([one], make_augmenters(entries), counts))
    assert [row.text for row in rows[1:]] == [
        "Oslo is home to Ann Lee.", "Law is of Ann Lee, the judge.", "Oslo: Oslo", "Law: Law",
    ]  # fmt: skip
    assert counts["reverse_statements: no_field"] == counts["identity_bridge: no_field"] == 1


def test_templates_may_stand_behind_a_template_column_and_an_assistant_alone():
    both = ReverseStatements(templates=("{object} {subject}",), template_column="other_way")
    assert both.templates
    with pytest.raises(ValueError, match="give one of templates, template_column and assistant"):
        ReverseStatements(template_column="other_way", assistant={"model": "a"})
