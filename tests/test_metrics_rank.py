"""Ranks are counted as said, over the right candidates, and chance is that over all orders."""

from itertools import permutations

import numpy as np
import pytest

from spt.metrics import METRICS, Answer, candidates, measure, rank_targets
from spt.metrics.rank import chance_of_rank
from spt.records import Question


def test_ranks_count_a_tie_at_its_mean_and_leave_other_right_answers_out() -> None:
    logprobs = np.array([[-1.0, -2, -3, -4], [-1, -2, -2, -2], [-5, -1, -9, -2]])
    own = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0]], dtype=bool)
    right = own | np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    ranks, rivals = rank_targets(logprobs, own, right)
    assert ranks.tolist() == [2.0, 3.0, 3.0]
    assert rivals.tolist() == [2, 3, 2]


def test_candidates_are_the_distinct_targets_of_a_direction_and_relation() -> None:
    rows = [("1", "forward", ("b", "a"), "x"), ("2", "forward", ("a", "c"), "x"), ("3", "reversed", ("d",), "x")]
    rows.append(("4", "forward", ("e",), None))
    questions = [Question(name, name, way, "p", targets, relation=part) for name, way, targets, part in rows]
    found = candidates(questions)
    assert {key: pool.texts for key, pool in found.items()} == {
        ("forward", "x"): ("a", "b", "c"), ("reversed", "x"): ("d",), ("forward", None): ("e",)
    }  # fmt: skip
    assert found["forward", "x"].among(("c", "b", "z")).tolist() == [False, True, True]


def test_rank_metrics_are_functions_of_the_rank() -> None:
    found = measure(Answer("", ("a",), ("a",), rank=2.5, rivals=30), METRICS)
    wanted = {"mrr": 0.4, "hits_1": 0.0, "hits_5": 1.0, "hits_10": 1.0}
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(("targets", "rivals"), [(1, 0), (1, 4), (2, 3), (3, 2)])
def test_chance_of_a_rank_is_that_over_all_orders(targets: int, rivals: int) -> None:
    marks = [True] * targets + [False] * rivals
    ranks = [order.index(True) + 1 for order in permutations(marks)]
    wanted = [ranks.count(rank) / len(ranks) for rank in range(1, rivals + 2)]
    assert chance_of_rank(targets, rivals).tolist() == pytest.approx(wanted)
