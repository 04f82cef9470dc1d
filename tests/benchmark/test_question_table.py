"""Questions on disk are read as from a list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.benchmark import question_table
from spt.benchmark.question_table import QuestionTable
from spt.records import DIRECTIONS, Question

_text = st.text(st.characters(codec="utf-8"), max_size=3)
_questions = st.lists(
    st.builds(
        Question, _text, _text, st.sampled_from(DIRECTIONS), _text, st.lists(_text, min_size=1).map(tuple),
        distractors=st.lists(_text).map(tuple), relation=st.none() | _text,
    ),
    max_size=9,
)  # fmt: skip


@given(_questions, st.slices(9), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_questions_on_disk_are_those_of_a_list(questions: list[Question], part: slice, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_table, "PAGE", 2)
        table = QuestionTable(questions)
        assert list(table) == questions
        assert table == tuple(questions)
        assert table != [*questions, Question("x", "x", "forward", "x", ("x",))]
        assert table[part] == questions[part]
        assert [table[place] for place in range(-len(questions), 0)] == questions
        for place in (len(questions), -len(questions) - 1):
            with pytest.raises(IndexError):
                table[place]
        windows = list(table.by_fact(size))
    assert [question for window in windows for question in window] == sorted(questions, key=lambda one: one.fact_id)
    facts = [{question.fact_id for question in window} for window in windows]
    assert sum(map(len, facts)) == len({question.fact_id for question in questions})
    assert all(len(window) >= size for window in windows[:-1])
