"""What lies on disk gives the same figures, to the last digit, as the same in memory."""

from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.records import DIRECTIONS, Question
from spt.score.questions import spread
from spt.statistics import Floors, fact_rows
from spt.statistics.fact_rows import FactRows
from spt.statistics.facts import by_fact

facts = st.sampled_from(["a", "b", "B", "é", "e", "ab", "\ud800", "\U0001f600", ""])
numbers = st.floats(-1e6, 1e6) | st.just(nan)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(facts, numbers, st.booleans()), min_size=1, max_size=12), st.integers(1, 5))
def test_totals_of_rows_on_disk_are_those_of_rows_in_memory(rows: list, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fact_rows, "BLOCK", block)
        # A column that came later is no number in the rows before.
        found = FactRows((fact, [float(chosen), value, *[1.0] * chosen]) for fact, value, chosen in rows)
    assert found.facts == tuple(sorted({fact for fact, *_ in rows}))
    chosen = found.where(0, 1.0)
    assert (len(found), chosen.sum()) == (len(rows), sum(chosen for *_, chosen in rows))
    kept = sorted((value, fact) for fact, value, chosen in rows if chosen and value == value)
    totals, wanted = found.totals(1, chosen), by_fact([value for value, _ in kept], [fact for _, fact in kept])
    assert totals.facts == wanted.facts
    assert totals.sums.tolist() == wanted.sums.tolist()
    assert totals.counts.tolist() == wanted.counts.tolist()
    if chosen.any():
        assert found.totals(2, ~chosen | chosen).counts.sum() == chosen.sum()


texts = st.text(st.sampled_from(["\0", "a", "b", " ", "é", "\U0001f600"]), min_size=1, max_size=3)
answers = st.lists(texts, min_size=1, max_size=2).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, st.sampled_from(DIRECTIONS), answers, st.none() | texts), min_size=1, max_size=12))
def test_answers_lie_on_disk_in_the_order_that_floors_are_drawn_from(rows: list) -> None:
    questions = [
        Question(str(n), fact, way, "p", targets, relation=half) for n, (fact, way, targets, half) in enumerate(rows)
    ]
    floors = Floors(questions, 0)
    for direction in DIRECTIONS:
        for half in ("", None, *{question.relation for question in questions} - {None}):
            own = [one for one in questions if one.direction == direction and half in (None, one.relation or "")]
            pool = floors._pools.get((direction, half), range(0))
            assert [floors._read(number) for number in pool] == sorted({(one.fact_id, one.targets) for one in own})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=20), st.integers(1, 20))
def test_a_part_of_the_questions_is_of_facts_at_even_distances(asked: list, at_most: int) -> None:
    questions = [Question(str(n), fact, "forward", "p", ("t",)) for n, fact in enumerate(asked)]
    names = list(dict.fromkeys(asked))
    kept = max(1, at_most * len(names) // len(asked))
    chosen = {names[number * len(names) // kept] for number in range(kept)}
    wanted = [question for question in questions if question.fact_id in chosen][:at_most]
    assert spread(questions, at_most) == (questions if len(asked) <= at_most else wanted)
