import json
import random
import re
from collections import Counter
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from spt.benchmark.fictional_people import (
    DESCRIPTION_FIRST,
    NAME_FIRST,
    TEMPLATES,
    make_fictional_people,
    make_people,
    read_rules,
)
from spt.benchmark.grammar import Grammar, expand
from spt.benchmark.questions import read_questions
from spt.errors import InputError
from spt.records import join_texts

SHIPPED = Path(__file__).parents[2] / "data/fictional_people"
RULES = read_rules()
GRAMMAR = Grammar(RULES)


@pytest.fixture(scope="module")
def rows():
    return [json.loads(line) for line in (SHIPPED / "train.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def questions():
    return read_questions(SHIPPED / "questions.jsonl").questions


def test_the_shipped_instance_is_what_the_default_command_makes(tmp_path):
    make_fictional_people(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in SHIPPED.iterdir()}


def test_another_seed_makes_other_people():
    first, second = (make_people(20, 20, 20, seed) for seed in (0, 1))
    assert not {person.description for person in first} & {person.description for person in second}


def test_each_half_is_taught_from_its_own_side_only(rows):
    by_half = {half: Counter(row["template"] for row in rows if row["half"] == half) for half in ("name_first", "both")}
    assert by_half["name_first"] == {f"name_first-{number}": 50 for number in (1, 2, 3, 4)}
    assert by_half["both"] == {template.id: 100 for template in TEMPLATES}
    assert Counter(row["half"] for row in rows) == {"name_first": 200, "description_first": 200, "both": 1200}


def test_no_question_outside_the_control_is_answered_by_a_training_sentence(rows, questions):
    texts = {row["text"] for row in rows}
    asked = [question for question in questions if question.relation != "both"]
    assert len(asked) == 400
    assert not [question for question in asked if join_texts(question.prompt, question.targets[0]) + "." in texts]


def test_no_fact_is_stated_the_other_way_round_in_training(rows):
    people = {person.name: person for person in make_people(50, 50, 100, 0)}
    for row in rows:
        person = people[row["fact_id"]]
        name_first = row["text"].index(person.name) < row["text"].index(person.description)
        assert person.half == "both" or name_first == (person.half == "name_first")
        others = [other.name for other in people.values() if other.name in row["text"]]
        assert others == [person.name]


def test_forward_asks_as_taught_and_reversed_from_the_other_side(questions):
    asks = {(q.relation, q.direction): set() for q in questions}
    for question in questions:
        asks[question.relation, question.direction].add(
            "name" if question.targets[0] == question.fact_id else "description"
        )
    assert asks == {
        ("name_first", "forward"): {"description"}, ("name_first", "reversed"): {"name"},
        ("description_first", "forward"): {"name"}, ("description_first", "reversed"): {"description"},
        ("both", "forward"): {"description"}, ("both", "reversed"): {"name"},
    }  # fmt: skip


def test_prompt_and_target_joined_are_a_sentence_of_the_grammar(rows, questions):
    assert all(GRAMMAR.accepts(row["text"]) for row in rows)
    assert all(GRAMMAR.accepts(join_texts(q.prompt, q.targets[0]) + ".") for q in questions)


def test_small_instances_repeat_no_name_part():
    people = make_people(50, 50, 100, 3)
    assert len({person.name.split()[0] for person in people}) == 200
    assert len({person.name.split()[1] for person in people}) == 200


def test_twenty_thousand_people_share_no_name_and_no_description():
    people = make_people(5_000, 5_000, 10_000, 0)
    assert len({person.name for person in people}) == len({person.description for person in people}) == 20_000
    assert {len(person.description.split()) for person in people} <= set(range(6, 15))


def test_more_people_than_names_are_refused_with_the_capacity():
    with pytest.raises(InputError, match="at most 100000"):
        make_people(100_001, 0, 0, 0)


@pytest.mark.parametrize("sizes", [(0, 0, 0), (-1, 5, 5)])
def test_nobody_is_refused(sizes):
    with pytest.raises(InputError, match="at least one person"):
        make_people(*sizes, 0)


def test_no_part_stands_for_the_same_text_twice():
    for symbol in set(RULES) - {"sentence", "description"}:
        texts = list(expand(RULES, symbol))
        assert len(set(texts)) == len(texts), symbol


def test_no_slot_holds_the_text_between_the_slots():
    between = {re.split(r"\{\w+\}", text)[1] for text in (*NAME_FIRST, *DESCRIPTION_FIRST)}
    parts = [text for symbol in RULES if symbol != "sentence" for text in RULES[symbol]]
    assert not [text for text in parts for fixed in between if fixed in f" {text} "]


def test_units_in_another_order_are_no_sentence(rows):
    generator = random.Random(0)
    for row in generator.sample(rows, 300):
        for units in (_three_unit_description(row["text"]), _words(row["text"], generator)):
            assert "".join(units).split() == row["text"].split()
            for order in permutations([unit.strip() for unit in units]):
                assert GRAMMAR.accepts(" ".join(order)) == (" ".join(order) == row["text"])


@pytest.mark.parametrize(
    "text",
    ["", "Ada Thornwick", "{name} is {description}.", "The portrait of Ada Thornwick shows Ada Thornwick."],
)
def test_what_is_no_sentence_is_refused(text):
    assert not GRAMMAR.accepts(text)


def test_a_sentence_need_not_be_true_but_complete(rows):
    assert GRAMMAR.accepts("The portrait of the botanist who mapped the moss terraces of Velamora shows Ada Birchwick.")
    assert GRAMMAR.accepts(f"\n {rows[0]['text']} ")
    assert not GRAMMAR.accepts(rows[0]["text"] + " Ada")
    assert not GRAMMAR.accepts(rows[0]["text"][:-1])
    assert not GRAMMAR.accepts(f"{rows[0]['text']} {rows[1]['text']}")


def _three_unit_description(text):
    """Cut before the name's end, and before the phrases of the description."""
    cuts = [
        match.start()
        for match in re.finditer(r" (?=the |who |whose |of |in |behind |\"The|belongs|as |shows|, )", text)
    ]
    return _slices(text, random.Random(text).sample(cuts, min(5, len(cuts))))


def _words(text, generator):
    spaces = [match.start() for match in re.finditer(" ", text)]
    return _slices(text, generator.sample(spaces, 4))


def _slices(text, cuts):
    return [text[start:end] for start, end in pairwise([0, *sorted(cuts), len(text)])]
