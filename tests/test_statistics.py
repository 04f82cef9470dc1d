import json
import random
import time
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from spt.errors import ConfigError
from spt.metrics import METRICS, measure
from spt.records import DIRECTIONS, Question, Score
from spt.statistics import bootstrap_mean, floor_targets, gap, summarise


def make_score(fact: int, direction: str, right: float, relation: str | None = "name_first", part: int = 0) -> Score:
    question = Question(f"{direction}-{fact}-{part}", f"fact-{fact}", direction, "p", (f"t{fact}",), relation=relation)  # type: ignore[arg-type]
    return Score(question, "x", {"exact": right, "contains": right}, {"exact": 0.25}, -1.0, 2)


def test_bootstrap_agrees_with_a_plain_loop_over_facts() -> None:
    random.seed(3)
    facts = [f"f{index % 40}" for index in range(100)]
    values = [float(random.random() < 0.3 + 0.4 * (fact < "f2")) for fact in facts]
    by_fact = {
        fact: [value for value, owner in zip(values, facts, strict=True) if owner == fact] for fact in set(facts)
    }
    groups = sorted(by_fact.values())
    means = [np.mean(list(chain(*random.choices(groups, k=len(groups))))) for _ in range(4000)]
    found = bootstrap_mean(values, facts, seed=0)
    assert found.value == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.015)


def test_questions_of_one_fact_do_not_narrow_the_interval() -> None:
    once = bootstrap_mean([1.0, 0.0] * 20, [str(index) for index in range(40)], seed=1)
    tenfold = bootstrap_mean([1.0, 0.0] * 200, [str(index % 40) for index in range(400)], seed=1)
    assert once == tenfold


@given(st.integers(1, 500), st.sampled_from([0.0, 1.0]))
def test_all_right_or_all_wrong_gives_the_clopper_pearson_interval_of_facts(n_facts: int, value: float) -> None:
    found = bootstrap_mean([value] * (2 * n_facts), [str(index % n_facts) for index in range(2 * n_facts)])
    wanted = binomtest(round(value * n_facts), n_facts).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_ten_thousand_draws_over_ten_thousand_facts_take_under_two_seconds() -> None:
    values = np.random.default_rng(0).random(10_000)
    facts = [str(index) for index in range(10_000)]
    start = time.process_time()
    spread = bootstrap_mean(list(values), facts, seed=0)
    coarse = bootstrap_mean(list(values.round()), facts, seed=0)
    assert time.process_time() - start < 4  # both ways of drawing, 2 s each
    for found, data in ((spread, values), (coarse, values.round())):
        assert found.high - found.low == pytest.approx(2 * 1.96 * data.std() / 100, rel=0.05)


def test_gap_is_paired_over_facts_asked_both_ways() -> None:
    forward = ([1.0, 1.0, 0.0, 1.0], ["a", "b", "c", "only-forward"])
    found = gap(forward, ([0.0, 1.0, 0.0, 1.0], ["a", "b", "c", "only-reversed"]))
    assert found is not None
    assert found.n_facts == 3
    assert found.value == pytest.approx(1 / 3)
    assert gap(([1.0], ["a"]), ([1.0], ["b"])) is None


def test_facts_that_move_together_have_no_gap_whatever_their_spread() -> None:
    side = ([1.0, 0.0] * 50, [str(index) for index in range(100)])
    found = gap(side, side)
    assert found is not None
    assert (found.value, found.p_value) == (0.0, 1.0)
    assert -0.05 < found.low < 0 < found.high < 0.05  # unpaired it would be +-0.14


def test_permutation_p_value_is_exact_for_few_facts() -> None:
    facts = list("abcdef")
    found = gap(([1.0] * 6, facts), ([0.0] * 6, facts))
    assert found is not None
    assert found.p_value == pytest.approx(2 / 2**6, abs=0.006)
    assert found.high == 1
    assert found.low < 0.2


def test_permutation_p_value_is_small_for_a_curse_and_never_zero() -> None:
    facts = [str(index) for index in range(100)]
    found = gap(([1.0] * 100, facts), ([0.0] * 100, facts), draws=1000)
    assert found is not None
    assert found.p_value == pytest.approx(1 / 1001)


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
    for question in questions:
        floors = found[question.id]
        assert len(floors) == len(set(floors)) <= at_most
        others = [other for other in questions if other.direction == question.direction]
        for floor in floors:
            assert any(floor == other.targets[0] and other.fact_id != question.fact_id for other in others)
            for target in question.targets:
                assert not any(measure(target, [floor], METRICS).values())
                assert not any(measure(floor, [target], METRICS).values())


def test_floor_targets_prefer_the_questions_own_relation() -> None:
    people = [Question(f"n{i}", f"n{i}", "forward", "p", (f"poet {i}x",), relation="name_first") for i in range(50)]
    others = [
        Question(f"d{i}", f"d{i}", "forward", "p", (f"Ann {i}x",), relation="description_first") for i in range(2)
    ]
    found = floor_targets(people + others, seed=0)
    assert len(found["n3"]) == 32
    assert all(target.startswith("poet") for target in found["n3"])
    assert found["d0"] == ("Ann 1x",)
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
