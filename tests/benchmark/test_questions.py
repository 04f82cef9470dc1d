import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spt.benchmark.questions import read_questions, write_questions
from spt.errors import QuestionError
from spt.records import DIRECTIONS, Question

GOOD = {"direction": "forward", "prompt": "Ada is", "targets": ["a botanist"]}

_text = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
_questions = st.lists(
    st.builds(
        Question, _text, _text, st.sampled_from(DIRECTIONS), _text, st.lists(_text, min_size=1).map(tuple),
        distractors=st.lists(_text).map(tuple), relation=st.none() | _text,
    ),
    min_size=1, unique_by=lambda question: question.id,
)  # fmt: skip


def write_rows(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@given(_questions)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_questions_are_read_back_equal(tmp_path, questions):
    write_questions(tmp_path / "questions.jsonl", questions)
    assert read_questions(tmp_path / "questions.jsonl").questions == tuple(questions)


def test_missing_ids_are_the_file_and_line_and_a_lone_question_is_its_own_fact(tmp_path):
    path = write_rows(tmp_path / "mine.jsonl", GOOD, GOOD | {"id": 0})
    first, second = read_questions(path).questions
    assert (first.id, first.fact_id) == ("mine:1", "mine:1")
    assert (second.id, second.fact_id) == ("0", "0")


def test_a_table_gives_the_same_questions_with_targets_joined_by_bars(tmp_path):
    table = 'id,direction,prompt,targets,distractors,relation,note\nq,reversed,"The poet, he is",Ada | Bela,,,seen\n'
    (tmp_path / "q.csv").write_text(table)
    (tmp_path / "q.tsv").write_text(table.replace('"The poet, he is"', "The poet; he is").replace(",", "\t"))
    expected = Question("q", "q", "reversed", "The poet, he is", ("Ada", "Bela"))
    assert read_questions(tmp_path / "q.csv").questions == (expected,)
    assert read_questions(tmp_path / "q.tsv").questions[0].targets == expected.targets


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"direction": "reverse"}, "Did you mean reversed?"),
        ({"direction": None}, "direction is missing"),
        ({"prompt": " \n"}, r"prompt ' \n' must be text that is not blank"),
        ({"targets": "Ada"}, "must be a list of texts"),
        ({"targets": []}, "give at least one right answer"),
        ({"targets": ["Ada", " "]}, "none blank"),
        ({"targets": [1]}, "must be a list of texts"),
        ({"distractors": [""]}, "distractors [''] must be"),
        ({"id": ["a"]}, "neither text nor a whole number"),
        ({"relations": "mother"}, "Did you mean relation?"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_a_remedy(tmp_path, change, said):
    path = write_rows(tmp_path / "q.jsonl", GOOD, GOOD | change)
    with pytest.raises(QuestionError) as caught:
        read_questions(path)
    assert "q.jsonl:2: " in str(caught.value)
    assert said in str(caught.value)


def test_a_misspelt_column_is_named_once_beside_what_it_hides(tmp_path):
    row = {"direction": "forward", "prompt": "Ada is", "target": ["x"]}
    with pytest.raises(QuestionError) as caught:
        read_questions(write_rows(tmp_path / "q.jsonl", row, row))
    assert str(caught.value).count("unknown column 'target'. Did you mean targets?") == 1


def test_all_bad_rows_are_listed_up_to_ten_with_broken_lines_among_them(tmp_path):
    path = write_rows(tmp_path / "q.jsonl", *[GOOD | {"direction": "up"}] * 12)
    path.write_text("{broken\n" + path.read_text())
    with pytest.raises(QuestionError) as caught:
        read_questions(path)
    message = str(caught.value)
    assert "q.jsonl:1: invalid_json" in message
    assert "q.jsonl:10: " in message
    assert "q.jsonl:11: " not in message
    assert "and 3 more" in message


def test_an_id_given_twice_names_both_lines(tmp_path):
    path = write_rows(tmp_path / "q.jsonl", GOOD | {"id": "a"}, GOOD | {"id": "a"})
    with pytest.raises(QuestionError, match=r"q\.jsonl:2: id 'a' was given in .*q\.jsonl:1;"):
        read_questions(path)


def test_other_columns_are_ignored_and_limit_keeps_the_first(tmp_path):
    path = write_rows(tmp_path / "q.jsonl", GOOD | {"id": "a", "source": 3}, GOOD | {"id": "b"}, {"direction": "up"})
    assert [question.id for question in read_questions(path, limit=2).questions] == ["a", "b"]


def test_a_file_without_questions_is_refused(tmp_path):
    (tmp_path / "q.jsonl").write_text("\n")
    with pytest.raises(QuestionError, match="holds no question"):
        read_questions(tmp_path / "q.jsonl")


def test_the_set_says_its_name_headline_and_grammar_and_a_lone_file_has_defaults(tmp_path):
    path = write_rows(tmp_path / "q.jsonl", GOOD)
    lone = read_questions(path)
    assert (lone.name, lone.headline, lone.grammar) == ("q", "exact", None)
    about = {"name": "mine", "headline": "startswith", "grammar": {"sentence": ["{who} sings."], "who": ["Ada"]}}
    (tmp_path / "benchmark.json").write_text(json.dumps(about))
    beside = read_questions(path)
    assert (beside.name, beside.headline) == ("mine", "startswith")
    assert beside.grammar is not None
    assert beside.grammar.accepts("Ada sings.")


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"name": "a", "headline": "logprob"}, "headline: Input should be 'exact'"),
        ({"name": "a", "headlin": "exact"}, "headlin: Extra inputs"),
        ({"name": "a", "grammar": {"sentence": ["{x}"]}}, "no alternatives for 'x'"),
        ({"name": "a", "grammar": {"sentence": ["{x}"], "x": ["{sentence}"]}}, "leads back to itself"),
    ],
)
def test_a_wrong_description_of_the_set_is_refused(tmp_path, about, said):
    (tmp_path / "benchmark.json").write_text(json.dumps(about))
    with pytest.raises(QuestionError, match=said):
        read_questions(write_rows(tmp_path / "q.jsonl", GOOD))
