import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spt.benchmark.questions import hash_questions, read_questions, write_questions
from spt.config import Questions
from spt.errors import QuestionError
from spt.records import DIRECTIONS, Question

PUBLISHED = Path(__file__).parents[2] / "../shared/data/person_description"
GOOD = {"direction": "forward", "prompt": "Ada is", "targets": ["a botanist"]}

_text = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
_questions = st.lists(
    st.builds(
        Question, _text, _text, st.sampled_from(DIRECTIONS), _text, st.lists(_text, min_size=1).map(tuple),
        distractors=st.lists(_text).map(tuple), relation=st.none() | _text,
    ).filter(lambda question: not set(question.targets) & set(question.distractors)),
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
        ({"distractors": ["a poet", "a botanist"]}, "'a botanist' is a target and a distractor; leave it in one"),
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


def test_an_id_given_twice_is_found_in_an_array_on_one_line(tmp_path):
    (tmp_path / "q.json").write_text(json.dumps([GOOD | {"id": "a"}, GOOD | {"id": "a"}]))
    with pytest.raises(QuestionError, match=r"q\.json:1: id 'a' was given in .*q\.json:1;"):
        read_questions(tmp_path / "q.json")


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


def test_files_without_directions_are_read_as_published_and_keep_the_space_before_an_answer(tmp_path):
    write_rows(tmp_path / "p2d.jsonl", {"prompt": "Ada is", "completion": " a botanist"})
    write_rows(tmp_path / "d2p.jsonl", {"prompt": "The botanist is", "completion": " Ada"})
    files = Questions(forward=(str(tmp_path / "p2d.jsonl"),), reversed=str(tmp_path / "d2p.jsonl"))
    assert read_questions(files).questions == (
        Question("p2d:1", "p2d:1", "forward", "Ada is", (" a botanist",)),
        Question("d2p:1", "d2p:1", "reversed", "The botanist is", (" Ada",)),
    )


def test_fields_name_the_columns_of_any_table(tmp_path):
    (tmp_path / "q.csv").write_text("who,asked,answer\nAda,Ada is,a botanist | a poet\n")
    fields = {"fact_id": "who", "prompt": "asked", "targets": "answer"}
    (question,) = read_questions(Questions(forward=str(tmp_path / "q.csv"), fields=fields)).questions
    assert question == Question("q:2", "Ada", "forward", "Ada is", ("a botanist", "a poet"))
    with pytest.raises(
        QuestionError, match=r"no field answers, which data\.questions\.fields names; fields found: who"
    ):
        read_questions(Questions(forward=str(tmp_path / "q.csv"), fields={**fields, "targets": "answers"}))


def test_a_questions_section_names_files_in_one_way_only():
    for wrong in ({}, {"path": "a", "forward": "b"}):
        with pytest.raises(ValueError, match="give either path"):
            Questions(**wrong)


def test_the_hash_covers_every_file_and_how_it_is_read(tmp_path):
    first, second = (
        str(write_rows(tmp_path / name, {"prompt": name, "completion": "x"})) for name in ("a.jsonl", "b.jsonl")
    )
    sections = [
        Questions(forward=first, reversed=second), Questions(forward=second, reversed=first), Questions(forward=first),
        Questions(forward=first, fields={"targets": "completion"}),
    ]  # fmt: skip
    assert len({hash_questions(section) for section in sections}) == 4


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the files of Berglund et al. are not here")
def test_the_files_of_berglund_et_al_are_questions_as_they_are():
    files = Questions(
        forward=(str(PUBLISHED / "p2d_prompts_test.jsonl"), str(PUBLISHED / "d2p_prompts_test.jsonl")),
        reversed=(str(PUBLISHED / "p2d_reverse_prompts_test.jsonl"), str(PUBLISHED / "d2p_reverse_prompts_test.jsonl")),
    )
    questions = read_questions(files).questions
    assert len(questions) == 1200
    assert questions[0].targets[0].startswith(" the acclaimed director")
    assert sum(question.direction == "forward" for question in questions) == 600


def test_rows_not_kept_are_left_out_unread_and_counted_once(tmp_path, capsys):
    kept = [GOOD | {"id": str(number), "keep": value} for number, value in enumerate((True, "yes", "X", 1, "1"))]
    left = [{"keep": value, "targets": "not read"} for value in (False, "no", "No", 0, "0", "", None)]
    set_ = read_questions(write_rows(tmp_path / "q.jsonl", *left, *kept))
    assert [question.id for question in set_.questions] == ["0", "1", "2", "3", "4"]
    assert capsys.readouterr().err.count("7 rows left out by the column keep, 5 kept") == 1


def test_a_file_of_which_nothing_is_kept_says_how_to_keep_a_row(tmp_path):
    with pytest.raises(QuestionError, match="of 1 rows none is kept; write yes into the column keep"):
        read_questions(write_rows(tmp_path / "q.jsonl", GOOD | {"keep": ""}))


def test_a_keep_that_says_neither_yes_nor_no_is_refused(tmp_path):
    with pytest.raises(QuestionError, match="keep 'maybe' is neither yes nor no"):
        read_questions(write_rows(tmp_path / "q.jsonl", GOOD | {"keep": "maybe"}))
