"""Of a passage the sentences are learned alone as well: those that say whom they mean, with their own completion."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.augment import augmented, make_augmenters
from spt.config import Augment
from spt.errors import InputError
from spt.records import Record

ALONE = {"sentences": {}}


def record(text, completion_start=None, number=0, **columns):
    return Record(f"r{number}", text, "corpus.jsonl", number + 1, completion_start, columns)


def run(records, entry=ALONE):
    counts = Counter()
    return list(augmented(records, make_augmenters([Augment.model_validate(entry)]), counts)), counts


PASSAGE = "Ann Lee was born in Oslo.  Ann Lee studied law. She lives in Dr. Ek's house. Every June Ann Lee sings."


def test_each_sentence_that_says_whom_it_means_is_learned_alone_beside_its_passage():
    rows, counts = run([record(PASSAGE, names=["Ann Lee"])])
    assert {row.id: row.text for row in rows} == {
        "r0": PASSAGE,
        "r0/sentence-1": "Ann Lee was born in Oslo.",
        "r0/sentence-2": "Ann Lee studied law.",
        "r0/sentence-3": "Every June Ann Lee sings.",
    }
    assert counts == {"sentences": 3, "sentences: pronoun_first": 1}
    assert all(row.columns == {"names": ["Ann Lee"]} for row in rows)


def test_a_record_of_one_sentence_is_left_as_it_is():
    records = [record("Ann Lee was born in Oslo."), record("Ann Lee asked Bo Ek whether she sang.", number=1)]
    assert run(records) == (records, Counter())


def test_a_sentence_may_be_learned_more_than_once_an_epoch():
    rows, counts = run([record("Ann Lee sings. Bo Ek paints.")], {"sentences": {"repeat": 2}})
    assert [row.text for row in rows[1:]] == ["Ann Lee sings."] * 2 + ["Bo Ek paints."] * 2
    assert counts["sentences"] == 4


@pytest.mark.parametrize(
    ("prompt", "completion", "learned", "reasons"),
    [
        ("Who? ", "Ann Lee sings. Bo Ek paints.", ["Ann Lee sings.", "Bo Ek paints."], {"sentences: in_prompt": 1}),
        ("Ann Lee sings. Bo Ek", " paints.", [" paints."], {"sentences: in_prompt": 1}),
        ("", "Ann Lee sings. Bo Ek paints.", ["Ann Lee sings.", "Bo Ek paints."], {}),
    ],
)
def test_where_completions_are_learned_a_sentence_has_its_share_of_one(prompt, completion, learned, reasons):
    rows, counts = run([record(prompt + completion, len(prompt))])
    assert [row.text[row.completion_start :] for row in rows[1:]] == learned
    assert {name: count for name, count in counts.items() if ":" in name} == reasons


def test_a_corpus_whose_sentences_all_need_what_stood_before_is_refused():
    with pytest.raises(InputError, match=r"pronoun_first 2\); it needs sentences that name what they are about"):
        run([record("He sings. She paints.")])


@given(st.lists(st.sampled_from(["Ann Lee sings.", "She left.", "It rained!", "Is Bo Ek here?", "\n\n"]), max_size=8))
@settings(max_examples=40, deadline=None)
def test_whatever_the_passage_its_sentences_stand_in_it_in_their_order_and_none_is_lost_uncounted(parts):
    text = " ".join(["Ann Lee came.", *parts, "Bo Ek went."])
    rows, counts = run([record(text)])
    place = 0
    for row in rows[1:]:
        place = text.index(row.text, place) + len(row.text)
    assert counts["sentences"] + counts["sentences: pronoun_first"] == 2 + sum(not part.isspace() for part in parts)
