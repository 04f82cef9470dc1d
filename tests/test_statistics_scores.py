"""Floors are other facts' answers; figures stand by direction and relation."""

import json
import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from counting import lines_run
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.errors import ConfigError
from spt.metrics import Answer, measure
from spt.records import DIRECTIONS, Question, Score
from spt.statistics import Floors, summarise

RULES = ("exact", "startswith", "contains")


def floor_targets(questions: list[Question], seed: int = 0, at_most: int = 32) -> dict[str, Any]:
    floors = Floors(questions, seed, at_most)
    return {question.id: floors[question] for question in questions}


def make_score(fact: int, direction: str, right: float, relation: str | None = "name_first", part: int = 0) -> Score:
    question = Question(f"{direction}-{fact}-{part}", f"fact-{fact}", direction, "p", (f"t{fact}",), relation=relation)  # type: ignore[arg-type]  # a str
    return Score(question, "x", {"exact": right, "contains": right}, {"exact": 0.25}, -1.0, 2)


names = st.sampled_from(
    ["Ann", "ann.", "Annabel", "Bob", "the poet", "The Poet Bob", "Carl", "Dora", "a", " ", "Émile"]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), names, st.sampled_from(DIRECTIONS), st.sampled_from(["x", "y"])), max_size=14
    ),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_floor_targets_are_other_facts_answers_and_never_right(rows: list, seed: int, at_most: int) -> None:
    questions = [
        Question(str(index), str(fact), direction, "p", (target, f"{target} {fact}"), relation=relation)
        for index, (fact, target, direction, relation) in enumerate(rows)
    ]
    found = floor_targets(questions, seed, at_most)
    assert found == floor_targets(questions[::-1], seed, at_most)
    assert found.keys() == {question.id for question in questions}
    worded = Floors(questions, seed).wordings
    for question in questions:
        floors = found[question.id]
        assert len(floors) == len(set(floors)) <= at_most
        others = [other for other in questions if other.direction == question.direction]
        for floor in floors:
            assert any(floor == other.targets and other.fact_id != question.fact_id for other in others)
            for right, other in product(worded[question], floor):
                assert not any(measure(Answer(right, (other,), (other,)), RULES).values())
                assert not any(measure(Answer(other, (right,), (right,)), RULES).values())


def test_floor_targets_prefer_the_questions_own_relation() -> None:
    people = [Question(f"n{i}", f"n{i}", "forward", "p", (f"poet {i}x",), relation="name_first") for i in range(50)]
    others = [
        Question(f"d{i}", f"d{i}", "forward", "p", (f"Ann {i}x",), relation="description_first") for i in range(2)
    ]
    found = floor_targets(people + others)
    assert len(found["n3"]) == 32
    assert all(target.startswith("poet") for (target,) in found["n3"])
    assert found["d0"] == (("Ann 1x",),)
    assert found["n3"] != found["n4"]


def make_scores() -> list[Score]:
    forward = [make_score(fact, "forward", 1.0, part=part) for fact in range(20) for part in range(2)]
    reverse = [make_score(fact, "reversed", float(fact % 4 == 0), "description_first") for fact in range(20)]
    control = [make_score(fact, "reversed", 1.0, "both") for fact in range(30, 50)]
    return forward + reverse + control


def test_summary_is_json_and_the_same_whatever_the_order_of_the_scores() -> None:
    scores = make_scores()
    first = json.dumps(summarise(scores, headline="exact", seed=0), allow_nan=False)
    random.Random(1).shuffle(scores)
    assert json.dumps(summarise(scores, headline="exact", seed=0)) == first


def test_headline_leaves_out_the_half_taught_both_ways() -> None:
    summary = summarise(make_scores(), headline="exact", seed=0)
    assert summary["reversed"]["exact"]["value"] == 0.25
    assert summary["reversed"]["exact"]["floor"] == 0.25
    assert summary["reversed"]["contains"]["floor"] is None
    assert (summary["forward"]["n_questions"], summary["forward"]["n_facts"]) == (40, 20)
    assert summary["gap"]["exact"]["value"] == 0.75
    assert summary["relations"]["both"]["reversed"]["exact"]["value"] == 1.0
    assert summary["relations"]["both"]["forward"] is None
    assert list(summary["match_rules"]) == ["exact", "contains"]


def test_a_set_of_nothing_but_the_control_is_its_own_headline() -> None:
    summary = summarise([make_score(1, "reversed", 1.0, "both")], headline="exact", seed=0)
    assert summary["reversed"]["n_questions"] == 1
    assert summary["forward"] is None
    assert summary["gap"] is None


def test_headline_that_was_not_measured_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"startswith.*exact, contains"):
        summarise(make_scores(), headline="startswith", seed=0)


def test_wordings_are_the_targets_of_all_questions_that_ask_for_the_fact_the_same_way() -> None:
    rows = [("1", "f", "forward", ("b", "a"), "x"), ("2", "f", "forward", ("c", "a"), "x")]
    rows += [
        ("3", "f", "reversed", ("d",), "x"),
        ("4", "f", "forward", ("e",), "y"),
        ("5", "g", "forward", ("i",), "x"),
    ]
    questions = [Question(name, fact, way, "p", targets, relation=part) for name, fact, way, targets, part in rows]
    wanted = {"1": ("b", "a", "c"), "2": ("c", "a", "b"), "3": ("d",), "4": ("e",), "5": ("i",)}
    known = Floors(questions, 0).wordings
    assert {question.id: known[question] for question in questions} == wanted


def test_a_fact_that_shares_a_wording_is_no_floor() -> None:
    questions = [
        Question("1", "f", "forward", "p", ("the tailor",)),
        Question("2", "f", "forward", "p", ("the sewer of tents",)),
        Question("3", "g", "forward", "p", ("a vet", "the sewer of tents")),
        Question("4", "h", "forward", "p", ("a baker",)),
    ]
    assert floor_targets(questions)["1"] == (("a baker",),)


def test_floors_of_many_questions_take_no_more_work_each() -> None:
    def work(count: int) -> int:
        questions = [Question(str(n), str(n), "forward", "p", (f"person {n}!",)) for n in range(count)]
        found: dict[str, Any] = {}
        lines = lines_run(lambda: found.update(floor_targets(questions)))
        assert {len(others) for others in found.values()} == {32}
        return lines

    assert work(2_000) < 12 * work(200)


def test_log_probabilities_stand_in_nats_without_bounds_below() -> None:
    scores = [replace(s, metrics=s.metrics | {"logprob": -4.0 - n % 7}) for n, s in enumerate(make_scores())]
    summary = summarise(scores, headline="exact", seed=0)
    assert summary["forward"]["logprob"]["unit"] == summary["gap"]["logprob"]["unit"] == "nats"
    assert summary["forward"]["logprob"]["low"] < summary["forward"]["logprob"]["value"] < -4
    assert "unit" not in summary["forward"]["exact"]
    alone = summarise(scores[:1], headline="exact", seed=0)
    assert json.loads(json.dumps(alone, allow_nan=False))["forward"]["logprob"]["low"] is None


def test_a_metric_of_some_questions_is_averaged_over_those() -> None:
    scores = [
        replace(score, metrics=score.metrics | ({"choice": 1.0} if score.question.fact_id == "fact-3" else {}))
        for score in make_scores()
    ]
    summary = summarise(scores, headline="exact", seed=0)
    assert summary["forward"]["choice"]["value"] == 1
    assert summary["gap"]["choice"]["n_facts"] == 1
    assert "choice" not in summary["relations"]["both"]["reversed"]
