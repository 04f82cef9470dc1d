import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from spt.compare.intervals import Grid, common, draw_means, figure, make_grid, share, spread
from spt.compare.pairs import best_methods, compare_methods
from spt.statistics import holm
from spt.statistics.bootstrap import intervals
from spt.statistics.facts import FactTotals, by_fact
from spt.statistics.permutation import sign_flip


def totals(rates: list[float], seed: int = 0) -> FactTotals:
    """Two questions a fact."""
    generator = random.Random(seed)
    facts = [f"fact-{number}" for number in range(len(rates)) for _ in range(2)]
    return by_fact([float(generator.random() < rates[int(fact[5:])]) for fact in facts], facts)


def grid(rates: list[list[float]]) -> Grid:
    found = make_grid({seed: totals(own, seed) for seed, own in enumerate(rates)})
    assert found
    return found


def bounds(one: Grid) -> tuple[float, float, float]:
    found = figure(one, draw_means([one])[0], (0.0, 1.0))
    return found["value"], found["low"], found["high"]


def test_one_seed_gives_the_interval_of_its_run() -> None:
    own = totals([0.3] * 40)
    one = make_grid({7: own})
    assert one
    (run,) = intervals([own], [(0.0, 1.0)])
    assert bounds(one) == (run.value, run.low, run.high)


def test_interval_is_that_of_drawing_seeds_and_facts_one_by_one() -> None:
    one = grid([[0.1] * 12, [0.5] * 12, [0.9] * 12])
    generator = np.random.default_rng(5)
    means = []
    for _ in range(4000):
        seeds, facts = generator.integers(3, size=3), generator.integers(12, size=12)
        taken = np.ix_(seeds, facts)
        means.append(one.sums[taken].sum() / one.counts[taken].sum())
    low, high = np.quantile(means, [0.025, 0.975])
    assert bounds(one)[1:] == pytest.approx((low, high), abs=0.02)


def test_seeds_that_disagree_widen_the_interval() -> None:
    alike, apart = grid([[0.5] * 60] * 3), grid([[0.1] * 60, [0.5] * 60, [0.9] * 60])
    widths = [high - low for _, low, high in (bounds(alike), bounds(apart))]
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_of_0_and_1_get_the_exact_interval_over_facts(rate: float) -> None:
    value, low, high = bounds(grid([[rate] * 20] * 3))
    exact = binomtest(round(20 * rate), 20).proportion_ci(method="exact")
    assert (value, low, high) == pytest.approx((rate, exact.low, exact.high))


def test_seeds_that_are_each_alike_but_differ_are_not_taken_for_certain() -> None:
    assert bounds(grid([[1.0] * 20, [0.0] * 20])) == (0.5, 0.0, 1.0)


def test_fact_that_a_seed_lacks_is_drawn_with_the_others() -> None:
    whole, part = totals([0.5] * 10, 1), totals([0.5] * 9, 2)
    both = make_grid({0: whole, 1: part})
    assert both
    assert both.value == pytest.approx((whole.sums.sum() + part.sums.sum()) / 38)
    value, low, high = bounds(both)
    assert 0 <= low < value < high <= 1


def test_share_draws_each_seeds_own_samples() -> None:
    found = share([(0.8, 200)])
    exact = binomtest(160, 200).proportion_ci(method="wilson")
    assert (found["low"], found["high"]) == pytest.approx((exact.low, exact.high), abs=0.02)
    assert share([(1.0, 100), (1.0, 100)])["low"] == pytest.approx(
        binomtest(200, 200).proportion_ci(method="exact").low
    )
    assert share([(0.2, 100), (1.0, 100)])["low"] < 0.3


def test_range_of_seeds_leaves_out_those_without_a_value() -> None:
    assert spread([2.0, None, 4.0]) == {"value": 3.0, "low": 2.0, "high": 4.0}
    assert spread([None]) is None


def test_pairs_are_tested_on_the_facts_of_the_seeds_that_both_have() -> None:
    a, b, c = grid([[0.1] * 30] * 3), grid([[0.5] * 30] * 3), grid([[0.5] * 30] * 2)
    grids = {(name, "reversed"): own for name, own in (("a", a), ("b", b), ("c", c))}
    rows = compare_methods(grids, ["a", "b", "c"], (0.0, 1.0))  # type: ignore[arg-type]  # one direction
    assert [(row["first"], row["second"], row["seeds"]) for row in rows] == [
        ("a", "b", [0, 1, 2]), ("a", "c", [0, 1]), ("b", "c", [0, 1]),
    ]  # fmt: skip
    both = common(a, c)
    assert both
    (p_value,) = sign_flip([both[1].means - both[0].means], draws=10_000)
    assert (rows[1]["value"], rows[1]["p_value"]) == (both[1].value - both[0].value, p_value)
    assert rows[1]["low"] < rows[1]["value"] < rows[1]["high"]
    assert [row["p_holm"] for row in rows] == holm([row["p_value"] for row in rows])
    # What c is of b's seeds is b itself: no difference at all.
    assert (rows[2]["value"], rows[2]["p_value"]) == (0.0, 1.0)


def test_difference_can_be_significant_among_many_methods() -> None:
    names = [f"m{number}" for number in range(30)]
    grids = {(name, way): grid([[0.2] * 40]) for name in names for way in ("forward", "reversed")}
    grids |= {("m3", way): grid([[0.95] * 40]) for way in ("forward", "reversed")}
    rows = compare_methods(grids, names, (0.0, 1.0))  # type: ignore[arg-type]  # words are directions
    assert len(rows) == 870
    assert {"m3" in (row["first"], row["second"]) for row in rows if row["p_holm"] < 0.05} == {True}
    figures = {name: {"value": grids[name, "reversed"].value} for name in names}
    assert best_methods(figures, rows) == ["m3"]


def test_no_method_is_best_where_none_answers() -> None:
    assert best_methods({"a": {"value": 0.0}, "b": None}, []) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_order_of_seeds_and_facts_changes_nothing(rates: list[float], generator: random.Random) -> None:
    seeds = {seed: totals(rates, seed) for seed in range(3)}
    shuffled = {}
    for seed in generator.sample(list(seeds), 3):
        order = generator.sample(range(len(rates)), len(rates))
        own = seeds[seed]
        shuffled[seed] = FactTotals(tuple(own.facts[place] for place in order), own.sums[order], own.counts[order])
    first, second = make_grid(seeds), make_grid(shuffled)
    assert first
    assert second
    assert (first.seeds, first.facts) == (second.seeds, second.facts)
    assert first.sums.tolist() == second.sums.tolist()
