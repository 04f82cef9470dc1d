"""Questions proposed for a corpus give one side and ask for the other, and nothing is asked before it was read."""

import csv
import json

import pytest
import yaml
from misbehaving import Script, says, serving, status

from spt.benchmark.propose import Beginnings, Proposal, propose, read_assistant
from spt.benchmark.questions import read_questions
from spt.config import Assistant
from spt.errors import ConfigError, InputError, QuestionError

TEXTS = [
    "Ada Birch directed The Silent Harbour in 1988. She lives in Oslo.",
    "Daphne Barrington is the mother of Uriah Hawthorne.",
    "Ada Birch directed The Red Sea.",
    "Ada Birch sings with Ada Birch.",
    "The old bridge was closed.",
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(TEXTS)))
    return path


def rows(folder):
    with (folder / "proposed.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep_all(folder):
    path = folder / "proposed.csv"
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([header, *(f"yes{line}" for line in lines)]) + "\n", encoding="utf-8")


def test_forward_ends_before_the_last_name_and_reversed_asks_for_the_first(corpus, tmp_path):
    counts = propose(corpus, tmp_path)
    found = {(row["direction"], row["prompt"]): row["targets"] for row in rows(tmp_path)}
    assert found == {
        ("forward", "Ada Birch directed The"): "Silent Harbour | Red Sea",
        ("forward", "Daphne Barrington is the mother of"): "Uriah Hawthorne",
        ("reversed", '"____ directed The Silent Harbour in 1988." The missing name is'): "Ada Birch",
        ("reversed", '"____ is the mother of Uriah Hawthorne." The missing name is'): "Daphne Barrington",
        ("reversed", '"____ directed The Red Sea." The missing name is'): "Ada Birch",
    }
    assert counts == {
        "sentences": 6, "questions proposed: forward": 2, "questions proposed: reversed": 3,
        "left out: no name at the start": 2, "left out: says the answer": 2,
    }  # fmt: skip


def test_a_fact_told_from_either_side_is_one_fact(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("Ada Birch directed The Silent Harbour.\nThe Silent Harbour was directed by Ada Birch.\n")
    propose(path, tmp_path)
    assert len(rows(tmp_path)) == 4
    assert {row["fact_id"] for row in rows(tmp_path)} == {"Ada Birch"}


def test_nothing_is_asked_unread_and_what_is_kept_is_read_as_questions(corpus, tmp_path):
    propose(corpus, tmp_path)
    with pytest.raises(QuestionError, match="of 5 rows none is kept"):
        read_questions(tmp_path / "proposed.csv")
    keep_all(tmp_path)
    questions = read_questions(tmp_path / "proposed.csv").questions
    assert questions[0].targets == ("Silent Harbour", "Red Sea")
    assert [question.fact_id for question in questions] == ["Ada Birch"] * 2 + ["Daphne Barrington"] * 2 + ["Ada Birch"]


def test_a_review_is_never_overwritten_and_the_same_proposal_is_written_again(corpus, tmp_path):
    assert propose(corpus, tmp_path) == propose(corpus, tmp_path)
    keep_all(tmp_path)
    before = (tmp_path / "proposed.csv").read_bytes()
    with pytest.raises(InputError, match="perhaps by your review"):
        propose(corpus, tmp_path)
    assert (tmp_path / "proposed.csv").read_bytes() == before
    (tmp_path / "proposed.csv").write_text("keep;prompt\n", encoding="utf-16")
    with pytest.raises(InputError, match="perhaps by your review"):
        propose(corpus, tmp_path)


def test_a_corpus_without_names_is_refused_with_what_was_seen(tmp_path):
    (tmp_path / "plain.txt").write_text("The old bridge was closed.\n")
    with pytest.raises(InputError, match="no name at the start: 1"):
        propose(tmp_path / "plain.txt", tmp_path)


def request(text, given, answer):
    return f"{text} | names: {given} | answer: {answer}"


def test_the_assistants_words_are_taken_where_they_hold_and_counted_where_not(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    mother = TEXTS[1]
    script = Script()
    script.behaviours = {
        request(mother, "Daphne Barrington", "Uriah Hawthorne"): [
            says('"Who is the son of Daphne Barrington?"\nOr so.')
        ],
        request(mother, "Uriah Hawthorne", "Daphne Barrington"): [
            says("Is Daphne Barrington Uriah Hawthorne's mother?")
        ],
        request(TEXTS[2], "Ada Birch", "Red Sea"): [says("What was directed?")],
        request(TEXTS[2], "Red Sea", "Ada Birch"): [status(400)],
        request(TEXTS[0].split(" She")[0], "Ada Birch", "Silent Harbour"): [says("")],
        request(TEXTS[0].split(" She")[0], "Silent Harbour", "Ada Birch"): [says("Who directed The Silent Harbour?")],
    }
    with serving(script) as url:
        assistant = Assistant(
            backend="openai", model="tiny", base_url=url, max_retries=0, cache=str(tmp_path / "cache")
        )
        counts = propose(corpus, tmp_path, assistant=assistant)
    assert {name: count for name, count in counts.items() if name.startswith("assistant")} == {
        "assistant: worded": 2, "assistant: says the answer": 1, "assistant: lacks the given name": 1,
        "assistant: refused": 1, "assistant: empty": 1,
    }  # fmt: skip
    prompts = [row["prompt"] for row in rows(tmp_path)]
    assert "Who is the son of Daphne Barrington?" in prompts
    assert "Who directed The Silent Harbour?" in prompts
    assert '"____ is the mother of Uriah Hawthorne." The missing name is' in prompts


def test_a_prompt_that_begins_a_training_sentence_is_found_whatever_its_case():
    taught = Beginnings(["Ada sings.", "Bob reads."])
    assert taught.begins("bob r")
    assert not taught.begins("Bob sings")
    assert not Beginnings([]).begins("x")


def test_a_prompt_must_name_what_is_given_and_not_what_is_asked():
    proposal = Proposal("1", "f", "reversed", "", "Ada", "Oslo", "")
    assert proposal.problem("Who lives in OSLO?") is None
    assert proposal.problem("Who lives there?") == "lacks the given name"
    assert proposal.problem("Does ada live in Oslo?") == "says the answer"


def test_an_assistant_is_a_model_or_a_section_of_a_file(tmp_path):
    section = {"backend": "openai", "model": "m", "base_url": "http://localhost:1/v1"}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(section))
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump({"name": "x", "segment": {"assistant": section}}))
    (tmp_path / "wrong.yaml").write_text("modle: x\n")
    assert read_assistant("org/model") == Assistant(model="org/model")
    assert read_assistant(str(tmp_path / "own.yaml")) == read_assistant(str(tmp_path / "experiment.yaml"))
    with pytest.raises(ConfigError, match="modle: unknown key"):
        read_assistant(str(tmp_path / "wrong.yaml"))
