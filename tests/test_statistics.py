"""Intervals cover what they say, draws are shared, and tests give the p-values that can be counted by hand."""

import random
import tracemalloc
from itertools import chain, product

import numpy as np
import pytest
from counting import lines_run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test
from statsmodels.stats.multitest import multipletests

from spt.statistics import bootstrap_mean, holm
from spt.statistics.bootstrap import MOST_NATS, Gap, exponential, exponentials, gaps, intervals
from spt.statistics.facts import by_fact
from spt.statistics.permutation import EXACT, sign_flip

Side = tuple[list[float], list[str]]


def gap(forward: Side, reverse: Side, draws: int = 10_000) -> Gap | None:
    """Each side is values and fact ids."""
    (found,) = gaps([(by_fact(*forward), by_fact(*reverse))], [(0.0, 1.0)], draws=draws)
    return found


def test_bootstrap_agrees_with_a_plain_loop_over_facts() -> None:
    random.seed(3)
    facts = [f"f{index % 40}" for index in range(100)]
    values = [float(random.random() < 0.3 + 0.4 * (fact < "f2")) for fact in facts]
    by_name = {
        fact: [value for value, owner in zip(values, facts, strict=True) if owner == fact] for fact in set(facts)
    }
    groups = sorted(by_name.values())
    means = [np.mean(list(chain(*random.choices(groups, k=len(groups))))) for _ in range(4000)]
    found = bootstrap_mean(values, facts, seed=0)
    assert found.value == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.015)


def test_intervals_cover_the_truth_19_times_of_20() -> None:
    generator = np.random.default_rng(7)
    facts = [str(index // 4) for index in range(240)]
    covered = {"rate": 0, "mean": 0}
    for _ in range(200):
        ability = generator.beta(2, 3, size=60).repeat(4)  # questions of a fact depend on each other: mean 0.4
        rate, mean = (generator.random(240) < ability).astype(float), generator.normal(ability, 0.3)
        for name, values in (("rate", rate), ("mean", mean)):
            found = bootstrap_mean(list(values), facts, draws=400, seed=1)
            covered[name] += found.low <= 0.4 <= found.high
    assert all(0.91 < count / 200 < 0.985 for count in covered.values()), covered


def test_questions_of_one_fact_do_not_narrow_the_interval() -> None:
    once = bootstrap_mean([1.0, 0.0] * 20, [str(index) for index in range(40)], seed=1)
    tenfold = bootstrap_mean([1.0, 0.0] * 200, [str(index % 40) for index in range(400)], seed=1)
    assert once == tenfold


@given(st.integers(1, 500), st.sampled_from([0.0, 1.0]))
def test_all_right_or_all_wrong_gives_the_clopper_pearson_interval_of_facts(n_facts: int, value: float) -> None:
    found = bootstrap_mean([value] * (2 * n_facts), [str(index % n_facts) for index in range(2 * n_facts)], draws=10)
    wanted = binomtest(round(value * n_facts), n_facts).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_one_fact_leaves_what_nothing_bounds_open() -> None:
    found = bootstrap_mean([-3.0], ["a"], bounds=(-np.inf, 0.0))
    assert (found.value, found.low) == (-3.0, None)
    assert found.high == pytest.approx(-3 * 0.025)


def test_perplexity_of_a_model_that_training_drove_apart_is_a_number_that_a_report_holds() -> None:
    assert exponential(1.0) == pytest.approx(np.e)
    assert exponentials({"value": 1e6, "low": 0.0, "high": None}) == {
        "value": exponential(MOST_NATS), "low": 1.0, "high": None,
    }  # fmt: skip
    assert 1e99 < exponential(MOST_NATS) <= 1e100


def test_ten_thousand_draws_over_ten_thousand_facts_take_not_a_line_of_python_each() -> None:
    generator = np.random.default_rng(0)

    def work(facts: int) -> int:
        names = [str(index) for index in range(facts)]
        sides = [by_fact(list(generator.random(facts)), names) for _ in range(2)]
        return lines_run(lambda: (intervals(sides, [(0.0, 1.0)] * 2), gaps([(sides[0], sides[1])], [(0.0, 1.0)])))

    work(100)  # what is imported at the first use
    # Draws come in blocks that fit into memory. A loop over facts or draws would be 30,000 lines at least.
    assert work(10_000) < 20_000


def test_intervals_and_gaps_of_ten_thousand_facts_are_as_wide_as_they_should_be_in_little_memory() -> None:
    generator = np.random.default_rng(0)
    facts = [str(index) for index in range(10_000)]
    columns = [*generator.random((6, 10_000)), *generator.random((6, 10_000)).round()]
    sides = [by_fact(list(column), facts) for column in columns]
    found = intervals(sides, [(0.0, 1.0)] * 12, seed=0)
    for interval, column in zip(found, columns, strict=True):
        assert interval.high - interval.low == pytest.approx(2 * 1.96 * column.std() / 100, rel=0.05)
    pairs = [(left, right) for left, right in zip(sides[:6], sides[6:], strict=True)]
    differences = [left - right for left, right in zip(columns[:6], columns[6:], strict=True)]
    for gap, difference in zip(gaps(pairs, [(0.0, 1.0)] * 6, seed=0), differences, strict=True):
        assert gap.high - gap.low == pytest.approx(2 * 1.96 * difference.std() / 100, rel=0.05)
    tracemalloc.start()
    intervals(sides, [(0.0, 1.0)] * 12, draws=500, seed=0)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_every_metric_over_the_same_facts_has_the_same_draws() -> None:
    facts = [str(index) for index in range(30)]
    side = by_fact([float(index % 3 == 0) for index in range(30)], facts)
    opposite = by_fact([float(index % 3 != 0) for index in range(30)], facts)
    first, second = intervals([side, opposite], [(0.0, 1.0)] * 2, seed=4)
    assert (first.low, first.high) == pytest.approx((1 - second.high, 1 - second.low))
    assert [first] == intervals([side], [(0.0, 1.0)], seed=4)


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


def test_a_complete_curse_has_a_bounded_gap_and_its_smallest_p_value() -> None:
    found = gap(([1.0] * 6, list("abcdef")), ([0.0] * 6, list("abcdef")))
    assert found is not None
    assert found.p_value == 2 / 2**6
    assert found.high == 1
    assert found.low < 0.2
    facts = [str(index) for index in range(100)]
    many = gap(([1.0] * 100, facts), ([0.0] * 100, facts), draws=1000)
    assert many is not None
    assert many.p_value == pytest.approx(1 / 1001)


@settings(deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.2, 0.3, 1.0]), min_size=1, max_size=8))
def test_few_facts_are_tested_over_every_pattern_of_signs(differences: list[float]) -> None:
    # 0.1 + 0.2 and 0.3 are one sum, whatever rounding says.
    sums = [round(sum(sign * part for sign, part in zip(signs, differences, strict=True)), 9)
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    wanted = np.mean([abs(total) >= abs(round(sum(differences), 9)) for total in sums])
    assert sign_flip([np.array(differences)], draws=7) == [pytest.approx(wanted)]


def test_many_facts_are_tested_as_scipy_does_and_few_in_the_same_manner() -> None:
    generator = np.random.default_rng(2)
    for count in (EXACT, EXACT + 1, 60):
        differences = generator.normal(0.25, 1, size=count)
        wanted = permutation_test(
            (differences,), np.sum, permutation_type="samples", n_resamples=1 << EXACT, vectorized=True, rng=generator
        ).pvalue
        assert sign_flip([differences], draws=20_000) == [pytest.approx(wanted, abs=0.02 if count > EXACT else 1e-12)]


def test_the_sign_flip_test_errs_1_time_of_20_where_nothing_differs() -> None:
    generator = np.random.default_rng(5)
    found = sign_flip(list(generator.normal(size=(600, 40))), draws=1000)
    assert 0.03 < np.mean(np.array(found) <= 0.05) < 0.07


@pytest.mark.parametrize("count", [1, 9])
def test_holm_is_statsmodels_holm(count: int) -> None:
    p_values = list(np.random.default_rng(count).random(count) ** 3)
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


def test_holm_multiplies_the_smallest_by_the_number_and_never_steps_down() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []
