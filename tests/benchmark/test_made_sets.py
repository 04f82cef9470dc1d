import json

import pytest

from spt.benchmark import make_benchmark
from spt.benchmark.questions import read_questions
from spt.errors import InputError


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "options"), [("symbolic", {"pairs": 12}), ("non-reciprocal", {"pairs": 3})])
def test_the_same_arguments_make_the_same_bytes_and_another_seed_other_ones(tmp_path, name, options):
    folders = [tmp_path / str(number) for number in range(3)]
    for folder, seed in zip(folders, (1, 1, 2), strict=True):
        make_benchmark(name, folder, seed=seed, **options)
    first, second, other = ((folder / "train.jsonl").read_bytes() for folder in folders)
    assert first == second != other


def test_symbols_taught_one_way_never_stand_in_the_other_order(tmp_path):
    make_benchmark("symbolic", tmp_path, pairs=40, words=3)
    for row in lines(tmp_path / "train.jsonl"):
        ahead = row["text"].index(row["subject"]) < row["text"].index(row["object"])
        assert row["half"] == "both" or ahead == (row["half"] == "name_first")
        assert len(row["subject"].split()) == 3
    for question in read_questions(tmp_path / "questions.jsonl").questions:
        asks_second = question.prompt.endswith("feature")
        natural = asks_second == (question.relation != "description_first")
        assert (question.direction == "forward") == natural


def test_a_guard_asks_the_relation_the_wrong_way_round_and_never_of_a_reciprocal_one(tmp_path):
    make_benchmark("non-reciprocal", tmp_path, pairs=2)
    asked = {question.fact_id for question in read_questions(tmp_path / "questions.jsonl").questions}
    rows = [row for row in lines(tmp_path / "train.jsonl") if row["fact_id"] in asked]
    taught = {(row["fact_id"], row["relation"]) for row in rows}
    guards = lines(tmp_path / "guards.jsonl")
    assert len(guards) == 5 * 2 * 2
    texts = [row["text"] for row in lines(tmp_path / "train.jsonl")]
    for guard in guards:
        (forbidden,) = guard["forbidden"]
        assert any(forbidden == x and relation in guard["prompt"] for x, relation in taught)
        assert forbidden not in guard["prompt"]
        assert "neighbour" not in guard["prompt"]
        assert not any(text.startswith(guard["prompt"]) for text in texts)


def test_other_pairs_show_both_ways_in_the_words_of_the_questions_and_are_not_asked(tmp_path):
    make_benchmark("non-reciprocal", tmp_path, pairs=3, shown=2)
    rows, questions = lines(tmp_path / "train.jsonl"), read_questions(tmp_path / "questions.jsonl").questions
    asked = {question.fact_id for question in questions}
    told = [row for row in rows if row["fact_id"] in asked]
    shown = [row for row in rows if row["fact_id"] not in asked]
    assert (len(told), len(shown)) == (7 * 3 * 3, 7 * 2 * 5 * 2)
    assert {row["relation"] for row in told} < {row["relation"] for row in shown}
    people = {name for row in shown for name in (row["subject"], row["object"])}
    assert not people & {name for row in told for name in (row["subject"], row["object"])}
    for question in questions:
        words = question.prompt.replace(question.fact_id, "").split()[:3]
        assert any(row["text"].split()[:3] == words for row in shown)
    assert all(row["text"].endswith(f"{row['object']}.") for row in shown)
    make_benchmark("non-reciprocal", tmp_path / "none", pairs=3, shown=0)
    assert len(lines(tmp_path / "none/train.jsonl")) == 7 * 3 * 3


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("symbolic", {"pairs": 3}, "at least 4 pairs"),
        ("symbolic", {"pairs": 9_000, "words": 1}, "at most 2450"),
        ("non-reciprocal", {"pairs": 0}, "at least 1 pair"),
        ("non-reciprocal", {"shown": -1}, "0 or more of the others"),
        ("non-reciprocal", {"pairs": 10**6}, "ask for at most"),
    ],
)
def test_a_number_out_of_range_is_refused_with_what_is_allowed(tmp_path, name, options, said):
    with pytest.raises(InputError, match=said):
        make_benchmark(name, tmp_path, **options)


def test_guards_that_another_set_left_are_said_to_count(tmp_path, capsys):
    make_benchmark("non-reciprocal", tmp_path, pairs=1, shown=0)
    assert "was there before" not in capsys.readouterr().err
    make_benchmark("symbolic", tmp_path, pairs=4)
    assert f"{tmp_path / 'guards.jsonl'}: was there before, and counts" in capsys.readouterr().err
