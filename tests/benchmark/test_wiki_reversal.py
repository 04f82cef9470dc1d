"""Questions of passages ask for either of two names, in the passage's own words, and have one answer each."""

import json

import pytest

from spt.benchmark import fetch_benchmark, make_benchmark, read_questions
from spt.benchmark.wiki_reversal import Pair
from spt.errors import InputError

TEXTS = [
    "Ada Birch directed The Silent Harbour in 1988. She lives in Oslo.",
    "Daphne Barrington is the mother of Uriah Hawthorne,\na painter from Lyon.",
    "Paris and London are cities.",
    "Uriah Hawthorne is the son of Daphne Barrington.",
    'Bo Ek founded "The Red Press" in Tarnow.',
    "Cleo Marsh was born in Lyon. Dan Frost was born in Lyon.",
    "The old bridge was closed.",
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = ({"id": f"p{number}", "text": text} for number, text in enumerate(TEXTS))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()]


def made(corpus, folder, **options):
    counts = make_benchmark("wiki-reversal", folder, source=corpus, **options)
    return counts, read_questions(folder / "questions.jsonl").questions


def test_either_name_of_a_pair_is_asked_from_the_words_between_it_and_the_other(corpus, tmp_path):
    counts, questions = made(corpus, tmp_path / "out", question_share=0.0)
    gaps = {(q.direction, q.prompt.removeprefix("Fill the gap: ")): q.targets for q in questions}
    assert gaps == {
        ("forward", "Ada Birch directed The ____. The missing name is"): ("Silent Harbour",),
        ("reversed", "____ directed The Silent Harbour. The missing name is"): ("Ada Birch",),
        ("forward", "Uriah Hawthorne, a painter from ____. The missing name is"): ("Lyon",),
        ("reversed", "____, a painter from Lyon. The missing name is"): ("Uriah Hawthorne",),
        ("forward", "Bo Ek founded ____. The missing name is"): ("The Red Press",),
        ("reversed", "____ founded The Red Press. The missing name is"): ("Bo Ek",),
    }
    assert {name: count for name, count in counts.items() if name.startswith("dropped")} == {
        "dropped: nothing said between the names": 2,  # Paris and London; The Red Press in Tarnow
        "dropped: several answers": 2,  # who was born in Lyon
        "dropped: stands in both orders": 2,  # mother and son
        "dropped: passage without a pair": 4,
    }


def test_passages_with_a_pair_are_taught_whole_with_their_facts(corpus, tmp_path):
    made(corpus, tmp_path / "out", question_share=0.0)
    taught = rows(tmp_path / "out")
    assert [row["text"] for row in taught] == [TEXTS[0], TEXTS[1], TEXTS[4]]
    assert taught[2]["facts"] == [{"subject": "Bo Ek", "relation": "founded", "object": "The Red Press"}]
    for row in taught:
        assert all(fact[side] in row["text"] for fact in row["facts"] for side in ("subject", "object"))


def test_a_pair_is_taught_in_the_questions_wordings_both_ways_or_asked_both_ways(corpus, tmp_path):
    folders = [tmp_path / str(number) for number in range(3)]
    for folder, seed in zip(folders, (4, 4, 5), strict=True):
        made(corpus, folder, question_share=0.7, seed=seed)
    taught = [row for row in rows(folders[0]) if "Fill the gap" in row["text"]]
    questions = read_questions(folders[0] / "questions.jsonl").questions
    assert (len(taught), len(questions)) == (4, 2)
    assert {row["id"].rpartition("/")[0] for row in taught}.isdisjoint(q.fact_id for q in questions)
    assert all(not row["text"].startswith(q.prompt) for row in rows(folders[0]) for q in questions)
    first, second, other = (read_questions(folder / "questions.jsonl").questions for folder in folders)
    assert first == second
    assert first != other or rows(folders[0]) != rows(folders[2])


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        (Pair("Ann", " met ", "Bo"), None),
        (Pair("Ann", " met ", "Ann Lee"), "the question says the answer"),
        (Pair("Ann", " of Oslo went to ", "Oslo"), "the question says the answer"),
        (Pair("Ann", " saw" * 13 + " ", "Bo"), "over 12 words between the names"),
    ],
)
def test_a_question_that_says_its_answer_or_quotes_too_much_is_not_asked(pair, problem):
    assert pair.problem == problem


def test_what_cannot_be_made_is_refused_with_what_was_seen(corpus, tmp_path):
    (tmp_path / "plain.txt").write_text("Paris and London.\n")
    with pytest.raises(InputError, match=r"0 pairs of names can be asked about \(nothing said between the names: 1\)"):
        made(tmp_path / "plain.txt", tmp_path / "out")
    with pytest.raises(InputError, match="give a share from 0 to below 1"):
        made(corpus, tmp_path / "out", question_share=1.0)
    with pytest.raises(InputError, match="give --from CORPUS"):
        make_benchmark("wiki-reversal", tmp_path / "out")
    with pytest.raises(InputError, match="run spt benchmark make wiki-reversal --from CORPUS"):
        fetch_benchmark("wiki-reversal", tmp_path / "out")
    with pytest.raises(InputError, match="pipeline must be a text"):
        made(corpus, tmp_path / "out", pipeline=1)
