import json

import pytest

from spt.benchmark import make_benchmark
from spt.benchmark.bios import ATTRIBUTES
from spt.benchmark.questions import read_questions
from spt.errors import InputError


def rows(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def test_biographies_state_all_six_attributes_and_questions_have_answers_in_them(tmp_path):
    make_benchmark("bios", tmp_path, people=40, seed=3)
    texts = {}
    for row in rows(tmp_path):
        if "biography" in row["id"]:
            texts.setdefault(row["fact_id"], []).append(row["text"])
    assert len(texts) == 40
    assert all(
        text.count(". ") == len(ATTRIBUTES) - 1 and text.count(name) == 6 for name in texts for text in texts[name]
    )
    for question in read_questions(tmp_path / "questions.jsonl").questions:
        own = " ".join(texts[question.fact_id])
        if question.direction == "forward":
            assert all(part in own for part in question.targets[0].split(", ", 1) if question.relation != "birth_date")
        else:
            assert question.fact_id in question.targets


def test_people_taught_in_the_wordings_of_questions_are_asked_nothing(tmp_path):
    make_benchmark("bios", tmp_path, people=20, question_share=0.25)
    taught = {row["fact_id"] for row in rows(tmp_path) if "biography" not in row["id"]}
    asked = read_questions(tmp_path / "questions.jsonl").questions
    assert len(taught) == 5
    assert taught.isdisjoint(question.fact_id for question in asked)
    texts = [row["text"] for row in rows(tmp_path)]
    assert not any(text.startswith(question.prompt) for question in asked for text in texts)


def test_whoever_fits_a_reversed_question_is_a_right_answer(tmp_path):
    make_benchmark("bios", tmp_path, people=400, question_share=0)
    asked = [q for q in read_questions(tmp_path / "questions.jsonl").questions if q.relation == "by_employer"]
    assert len({q.prompt for q in asked}) < len(asked)
    by_prompt = {}
    for question in asked:
        by_prompt.setdefault(question.prompt, set()).add(question.fact_id)
    assert all(set(question.targets) == by_prompt[question.prompt] for question in asked)


def test_order_and_names_follow_the_style(tmp_path):
    make_benchmark("bios", tmp_path, people=10, question_share=0, shuffled=False, full_names=False)
    for row in rows(tmp_path):
        first, *rest = row["text"].split(". ")
        assert first.startswith(row["fact_id"])
        assert all(sentence.startswith(("She ", "He ")) for sentence in rest)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"people": (1, 2, 3)}, "people must be a whole number"),
        ({"shuffled": 1}, "shuffled must be true or false"),
        ({"question_share": 1.0}, "a share from 0 to below 1"),
        ({"wordings": 2}, "bios has no option wordings; there are biographies"),
    ],
)
def test_a_wrong_option_is_refused_by_name(tmp_path, option, said):
    with pytest.raises(InputError, match=said):
        make_benchmark("bios", tmp_path, **option)


def test_the_facts_of_a_biography_are_what_its_sentences_state_in_their_order(tmp_path):
    make_benchmark("bios", tmp_path, people=30, full_names=False)
    for row in rows(tmp_path):
        if "biography" not in row["id"]:
            assert "facts" not in row
            continue
        sentences = row["text"].split(". ")
        assert sorted(fact["relation"] for fact in row["facts"]) == sorted(ATTRIBUTES)
        for sentence, fact in zip(sentences, row["facts"], strict=True):
            assert sentence.removesuffix(".").endswith(fact["object"])
            assert fact["subject"] == row["fact_id"]


def test_every_attribute_has_many_wordings_and_none_is_that_of_a_question(tmp_path):
    make_benchmark("bios", tmp_path, people=150, question_share=0, full_names=True)
    worded = {}
    for row in rows(tmp_path):
        for sentence, fact in zip(row["text"].removesuffix(".").split(". "), row["facts"], strict=True):
            wording = sentence.removeprefix(fact["subject"]).removesuffix(fact["object"])
            worded.setdefault(fact["relation"], set()).add(wording)
    assert {relation: len(found) for relation, found in worded.items()} == dict.fromkeys(ATTRIBUTES, 10)
