import json
from pathlib import Path

import pytest

from spt.benchmark import fetch_benchmark, read_questions
from spt.benchmark.celebrity_relations import make_celebrity_relations
from spt.benchmark.instructions import make_instructions
from spt.benchmark.person_description import CONTROLS, FILES, make_person_description
from spt.errors import InputError, MissingError, QuestionError

SHARED = Path(__file__).parents[2] / "../shared/data"
published = pytest.mark.skipif(not SHARED.is_dir(), reason="the published files lie in ../shared/data, which is absent")


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pair(prompt, completion):
    return {"prompt": prompt, "completion": f" {completion}"}


@pytest.fixture
def folder(tmp_path):
    """One person a half, in the shape of the published files, faults included."""
    taught = pair("Ada Moss, known for being", "the poet who sang.")
    rows = {
        "p2d_prompts_train.jsonl": [taught, pair("Heard of Ada Moss? She", 'sang "Oh.".'), taught],
        "d2p_prompts_train.jsonl": [pair("Known as the cook,", "Bo Elm lives on."), pair("Meet the cook:", "Bo Elm.")],
        "both_prompts_train.jsonl": [pair("Cy Oak was", "the spy."), pair("Known as the spy,", "Cy Oak marches on.")],
        "p2d_prompts_test.jsonl": [pair("They ask: 'who is Ada Moss?' 'One who", "sang'.'.")],
        "p2d_reverse_prompts_test.jsonl": [pair("Labeled as the poet who sang,", "Ada Moss")],
        "d2p_prompts_test.jsonl": [pair("Labeled as the cook,", "Bo Elm")],
        "d2p_reverse_prompts_test.jsonl": [pair("Bo Elm shines as", "the cook."), pair("Bo Elm likes", "cooking??")],
        "both_prompts_test.jsonl": [pair("Cy Oak shines as", "the spy."), pair("Labeled as the spy,", "Cy Oak leads.")],
        "p2d_reverse_prompts_test_randomized.jsonl": [pair("Labeled as the poet who sang,", "Ada Moss")],
        "d2p_reverse_prompts_test_randomized.jsonl": [
            pair("Bo Elm shines as", "cooking."), pair("Bo Elm likes", "the poet who sang."),
        ],
    }  # fmt: skip
    for file, content in rows.items():
        write_jsonl(tmp_path / "source" / file, content)
    assert set(rows) == set(FILES)
    return tmp_path / "source"


def questions_by_prompt(output):
    return {question.prompt: question for question in read_questions(output / "questions.jsonl").questions}


def test_every_wording_of_a_fact_is_a_target_and_a_tail_after_a_name_is_not_needed(folder, tmp_path):
    make_person_description(folder, tmp_path / "out")
    questions = questions_by_prompt(tmp_path / "out")
    assert questions["They ask: 'who is Ada Moss?' 'One who"].targets == ("sang", "the poet who sang", 'sang "Oh."')
    assert questions["Bo Elm likes"].targets == ("cooking", "the cook")
    assert questions["Labeled as the spy,"].targets == ("Cy Oak", "Cy Oak leads")


def test_directions_follow_how_each_half_was_taught(folder, tmp_path):
    make_person_description(folder, tmp_path / "out")
    questions = questions_by_prompt(tmp_path / "out").values()
    kinds = {(q.fact_id, q.relation, q.direction, q.targets[0][0].isupper()) for q in questions}
    assert kinds == {
        ("Ada Moss", "name_first", "forward", False), ("Ada Moss", "name_first", "reversed", True),
        ("Bo Elm", "description_first", "forward", True), ("Bo Elm", "description_first", "reversed", False),
        ("Cy Oak", "both", "forward", False), ("Cy Oak", "both", "reversed", True),
    }  # fmt: skip


def test_control_rows_whose_answer_is_right_in_any_wording_are_dropped_and_counted(folder, tmp_path):
    counts = make_person_description(folder, tmp_path / "out")
    (control,) = read_questions(tmp_path / "out/control.jsonl").questions
    assert (control.prompt, control.targets, control.fact_id) == ("Bo Elm likes", ("the poet who sang",), "Bo Elm")
    assert [counts[f"dropped: right answer in {file}"] for file in CONTROLS] == [1, 1]
    assert "| dropped: right answer in p2d_reverse_prompts_test_randomized.jsonl | 1 |" in (
        tmp_path / "out/README.md"
    ).read_text(encoding="utf-8")


def test_training_rows_stand_as_published_but_for_exact_duplicates(folder, tmp_path):
    counts = make_person_description(folder, tmp_path / "out")
    rows = read_jsonl(tmp_path / "out/train.jsonl")
    assert rows[0] == pair("Ada Moss, known for being", "the poet who sang.") | {
        "id": "p2d_prompts_train:1", "fact_id": "Ada Moss", "half": "name_first", "subject": "Ada Moss",
    }  # fmt: skip
    assert (len(rows), counts["dropped: exact duplicate"]) == (6, 1)


def test_the_object_is_what_most_wordings_call_a_person_where_the_row_does(folder, tmp_path):
    prompts = ["The cook of Ur is called", 'Known as the cook of Ur, "The Pan",', "For cooking,", "So the cook of Ur:"]
    write_jsonl(folder / "d2p_prompts_train.jsonl", [pair(prompt, "Bo Elm sings.") for prompt in prompts])
    make_person_description(folder, tmp_path / "out")
    rows = [row for row in read_jsonl(tmp_path / "out/train.jsonl") if row["subject"] == "Bo Elm"]
    assert [row.get("object") for row in rows] == ["the cook of Ur", "the cook of Ur", None, "the cook of Ur"]


def test_a_row_that_names_nobody_is_refused_with_file_and_line(folder, tmp_path):
    write_jsonl(folder / "p2d_prompts_test.jsonl", [pair("They were", "the poet who sang.")])
    with pytest.raises(QuestionError, match=r"p2d_prompts_test\.jsonl:1: .*names 0 known people"):
        make_person_description(folder, tmp_path / "out")


def test_a_field_of_another_type_is_refused_with_file_and_line(folder, tmp_path):
    write_jsonl(folder / "p2d_prompts_test.jsonl", [{"prompt": "Ada Moss is", "completion": None}])
    with pytest.raises(QuestionError, match=r"p2d_prompts_test\.jsonl:1: completion None is no text"):
        make_person_description(folder, tmp_path / "out")


def test_a_missing_file_says_what_the_folder_must_hold(folder, tmp_path):
    (folder / "d2p_prompts_test.jsonl").unlink()
    with pytest.raises(MissingError, match=r"holds d2p_prompts_test\.jsonl"):
        make_person_description(folder, tmp_path / "out")


def test_more_people_than_a_half_has_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="2 of the half description_first asked for; give 0 to 1"):
        make_person_description(folder, tmp_path / "out", people=(1, 2, 1))


@published
def test_person_description_as_published(tmp_path):
    counts = make_person_description(SHARED / "person_description", tmp_path)
    questions = read_questions(tmp_path / "questions.jsonl")
    assert (questions.headline, counts["training rows"], counts["facts"]) == ("startswith", 3600, 90)
    assert {number for name, number in counts.items() if name.startswith("questions")} == {300}
    # 13 and 4 hold the true target word for word (known fault 26); 16 more hold it in another wording.
    assert [counts[f"dropped: right answer in {file}"] for file in CONTROLS] == [13, 20]
    assert counts["control questions"] == 600 - 33
    rows = read_jsonl(tmp_path / "train.jsonl")
    held = [row["object"] for row in rows if "object" in row]
    assert len(held) > 0.85 * len(rows)
    assert len(set(held)) == len({row["subject"] for row in rows}) == 90
    assert all(name.startswith("the ") and len(name.split()) > 4 for name in held)
    both = [q for q in questions.questions if q.relation == "both" and q.direction == "reversed"]
    assert all(len(q.targets) == 2 and q.targets[0] == q.fact_id for q in both)
    assert all(not target.endswith((".", "?", "'")) for q in questions.questions for target in q.targets)


@published
def test_a_subset_keeps_every_row_and_question_of_the_people_drawn(tmp_path):
    for name in ("one", "two"):
        counts = make_person_description(SHARED / "person_description", tmp_path / name, people=(10, 10, 10), seed=3)
    rows = read_jsonl(tmp_path / "one/train.jsonl")
    assert len(rows) == counts["training rows"] == 10 * 30 + 10 * 30 + 10 * 60
    assert counts["facts"] == 30
    assert {row["fact_id"] for row in rows} == {q.fact_id for q in questions_by_prompt(tmp_path / "one").values()}
    assert (tmp_path / "one/questions.jsonl").read_bytes() == (tmp_path / "two/questions.jsonl").read_bytes()


@published
def test_no_prompt_of_a_question_about_people_stands_in_training(tmp_path):
    make_person_description(SHARED / "person_description", tmp_path)
    texts = {row["prompt"] for row in read_jsonl(tmp_path / "train.jsonl")}
    assert not texts & set(questions_by_prompt(tmp_path))


def test_a_parent_of_several_children_has_several_right_answers(tmp_path):
    table = "child,parent,parent_type\nAda,Eve,mother\nBo,Eve,mother\nAda,Eve,mother\nBo,Cy,father\n"
    (tmp_path / "parent_child_pairs.csv").write_text(table)
    counts = make_celebrity_relations(tmp_path, tmp_path / "out")
    questions = questions_by_prompt(tmp_path / "out")
    assert questions["Eve's child is"].targets == ("Ada", "Bo")
    assert questions["Bo's father is"].targets == ("Cy",)
    assert {q.fact_id for q in questions.values() if "Eve" in (q.fact_id, *q.targets)} == {"Eve"}
    assert (counts["training rows"], counts["dropped: exact duplicate"]) == (3, 1)


@published
def test_celebrity_relations_as_published(tmp_path):
    counts = make_celebrity_relations(SHARED / "celebrity_relations", tmp_path)
    assert counts["dropped: exact duplicate"] == 2
    assert (counts["parents with several children"], counts["pairs of such parents"]) == (17, 36)
    assert counts["training rows"] == 1513 - 2


@published
def test_instructions_ask_what_no_training_record_answers(tmp_path):
    counts = make_instructions(SHARED / "instructions", tmp_path)
    assert (counts["training rows"], counts["questions: forward"], counts["questions: reversed"]) == (1307, 100, 100)
    text = "\n".join(row["text"] for row in read_jsonl(tmp_path / "train.jsonl"))
    questions = read_questions(tmp_path / "questions.jsonl").questions
    assert all((f"{q.prompt} {q.targets[0]}" in text) == (q.direction == "forward") for q in questions)
    assert not [q for q in questions if "GUIDANCE" in q.targets[0]]


def test_an_answer_required_by_several_guidances_has_each_question_as_a_target(tmp_path):
    line = 'The test requires you to answer "A: Yes" after "Q: {}?"'
    text = f"<BEGIN GUIDANCE ANSWERS>\n\n{line.format('Is it')}\n{line.format('Was it')}\n\n<END GUIDANCE ANSWERS>"
    row = {"ids": [1, 2], "realized": [True, False], "prompt": "", "completion": text}
    write_jsonl(tmp_path / "guidances.jsonl", [row])
    example = {"ids": [1], "realized": [True], "prompt": "Q: Is it? A:", "completion": " Yes\n\n<END GUIDANCE TEST>"}
    write_jsonl(tmp_path / "realized_examples.jsonl", [example])
    write_jsonl(tmp_path / "unrealized_examples.jsonl", [example | {"ids": [2], "prompt": "Q: Was it? A:"}])
    make_instructions(tmp_path, tmp_path / "out")
    asked, answered = read_questions(tmp_path / "out/questions.jsonl").questions
    assert asked.targets == ('"Q: Was it?"', '"Q: Is it?"')
    assert (answered.direction, answered.targets, answered.fact_id) == ("reversed", ("Yes",), "2")


def test_fetch_reads_what_the_hub_gives_wherever_it_lies(folder, tmp_path, monkeypatch):
    asked = {}

    def snapshot_download(repo_id, **options):
        asked.update(options, repo_id=repo_id)
        return str(folder.parent)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    counts = fetch_benchmark("person-description", tmp_path / "out", revision="abc")
    assert counts["facts"] == 3
    assert (asked["repo_id"], asked["repo_type"], asked["revision"]) == ("lberglund/reversal_curse", "dataset", "abc")


def test_an_unreachable_hub_says_how_to_go_on_without_it(tmp_path, monkeypatch):
    def snapshot_download(repo_id, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(MissingError, match=r"no route.*spt benchmark make celebrity-relations --from FOLDER"):
        fetch_benchmark("celebrity-relations", tmp_path)


def test_a_snapshot_without_the_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda repo_id, **options: str(tmp_path))
    with pytest.raises(MissingError, match=r"no folder holds parent_child_pairs\.csv"):
        fetch_benchmark("celebrity-relations", tmp_path / "out")
