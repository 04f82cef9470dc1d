"""The guards: what counts as a wrong inference, a known answer, an echo; and the files they are read from."""

import json
import math
from pathlib import Path

import pytest
from experiment import write_experiment
from fakes import byte_level, tiny_model

from spt.benchmark import make_benchmark
from spt.benchmark.fictional_people import make_people, make_strangers
from spt.benchmark.guards import read_guards, write_guards
from spt.benchmark.questions import read_questions
from spt.config import read_config
from spt.errors import QuestionError
from spt.preprocess import preprocess
from spt.records import Guard, Question, Score
from spt.score.asked import LocalAsked
from spt.score.claims import claims, compared, first_sentence, margin, memorised
from spt.score.guards import echo, echoes, measure_guards

SHIPPED = Path(__file__).parents[2] / "data" / "fictional_people"
ANN = Guard("a", "f", "non_reciprocal", "Everybody knows that the mother of Bob Crane is", ("Ann Lee",))
EVE = Guard("e", "g", "non_reciprocal", "Everybody knows that the mother of Dan Ember is", ("Eve Flint",))
WHO = Guard("w", "h", "wrong_frame", "The portrait of the tailor of Nowhere shows", ())


class Names:
    """A model that finds some names likelier than others."""

    has_log_probabilities = True

    def __init__(self, nats):
        self.nats = nats

    def log_probabilities(self, groups):
        return [[(self.nats[text], 2) for text in texts] for _, texts in groups]


@pytest.mark.parametrize(
    ("answer", "hit"),
    [
        ("Ann Lee.", 1), ("called ANN  LEE, of course", 1), ("Eve Flint. The mother of Ann Lee is Eve", 0),
        ("Anna Lee", 0), ("Ann", 0), ("", 0), ("Dr. J. R. Ann Lee", 1),
    ],
)  # fmt: skip
def test_a_claim_is_what_the_first_sentence_of_an_answer_states(answer, hit):
    found = claims("non_reciprocal", {ANN: answer, EVE: "Uriah"}, (), seed=0)
    assert found["value"] == hit / 2
    assert [example["guard"] for example in found["examples"]] == ["a"] * hit


def test_one_guards_forbidden_name_is_free_in_another():
    found = claims("non_reciprocal", {ANN: "Eve Flint", EVE: "Eve Flint"}, (), seed=0)
    assert (found["value"], found["n"], found["examples"][0]["guard"]) == (0.5, 2, "e")
    assert found["low"] <= 0.5 <= found["high"]


def test_any_target_of_the_set_is_a_known_answer_in_a_wrong_frame():
    known = ["Ann Lee", "the diver of Oslo"]
    for answer, hit in (("Ann Lee", 1.0), ("surely the diver of Oslo!", 1.0), ("Bob Crane", 0.0)):
        assert claims("wrong_frame", {WHO: answer}, known, seed=0)["value"] == hit
    found = claims("wrong_frame", {}, known, seed=0)
    assert (found["value"], found["n"], found["reason"]) == (
        None, 0, "the set's guards.jsonl has no wrong_frame prompts",
    )  # fmt: skip


def test_beside_memorised_answers_stands_how_many_of_them_are_names():
    known = ["Ann Lee", "the diver of Oslo"]
    other = Guard("x", "i", "wrong_frame", "A plaque introduces Nobody Known as", ())
    found = memorised({WHO: "Ann Lee.", other: "the diver of Oslo"}, known, seed=0)
    assert (found["value"], found["named"]["value"], found["named"]["n"]) == (1.0, 0.5, 2)
    assert "baseline" in found["rule"]
    assert "named" not in memorised({WHO: "the diver"}, ["the diver of Oslo"], seed=0)


def test_the_margin_compares_a_forbidden_name_with_those_of_other_guards():
    found = margin(Names({"Ann Lee": -3.0, "Eve Flint": -5.0}), compared([ANN, EVE], 0), seed=0)
    assert (found["value"], found["n"], found["unit"]) == (0.0, 2, "nats")  # +2 and -2
    assert compared([ANN], 0) == {}


@pytest.mark.parametrize(
    ("prediction", "echoed"),
    [
        ("the botanist of somewhere", True), ("Known, THE botanist, it", True), ("botanist", True), ("", False),
        ("Oslo", False), ("the botanist on", False), ("Oslo is where", False),
    ],
)  # fmt: skip
def test_an_echo_begins_with_words_of_the_prompt_that_begin_no_target(prediction, echoed):
    question = Question("q", "f", "reversed", "Known: the botanist of Oslo is", ("Uriah", "Oslo"))
    assert echoes(question, prediction) == echoed


def test_echoes_are_counted_over_the_headline():
    def score(fact, prediction, relation):
        question = Question(f"{fact}-q", fact, "forward", "Ann Lee is", ("a diver",), relation=relation)
        return Score(question, prediction, {}, {}, -1.0, 1)

    scores = [score("a", "Ann Lee", "name_first"), score("b", "a diver", "name_first"), score("c", "Ann Lee", "both")]
    found = echo(iter(scores), seed=0)
    assert (found["value"], found["n"]) == (0.5, 2)
    assert found["examples"] == [{"question": "a-q", "prompt": "Ann Lee is", "prediction": "Ann Lee"}]


def test_initials_end_no_sentence():
    assert first_sentence("J. Smith of Oslo. Ann") == "J. Smith of Oslo."
    assert first_sentence("東京。Ann") == "東京。"
    assert first_sentence("no end") == "no end"


def test_guards_are_read_back_as_written_and_none_is_no_file(tmp_path):
    assert read_guards(tmp_path / "questions.jsonl") is None
    write_guards(tmp_path / "guards.jsonl", [ANN, WHO])
    assert read_guards(tmp_path / "questions.jsonl") == (ANN, WHO)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "other"}, "kind 'other' is none of non_reciprocal, wrong_frame"),
        ({"prompt": " "}, "prompt ' ' must be text"),
        ({"forbidden": []}, "forbidden is empty"),
        ({"forbidden": "Ann"}, "must be a list of texts"),
    ],
)
def test_a_bad_guard_is_refused_with_its_line(tmp_path, change, said):
    row = {"id": "a", "fact_id": "f", "kind": "non_reciprocal", "prompt": "Who?", "forbidden": ["Ann"]}
    path = tmp_path / "guards.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": "b", **change}) + "\n")
    with pytest.raises(QuestionError, match=r"guards\.jsonl:2: ") as caught:
        read_guards(tmp_path / "questions.jsonl")
    assert said in str(caught.value)
    path.write_text((json.dumps(row) + "\n") * 2)
    with pytest.raises(QuestionError, match="id 'a' was given before"):
        read_guards(tmp_path / "questions.jsonl")


def test_strangers_stand_in_no_sentence_and_bear_surnames_that_nobody_has():
    guards = read_guards(SHIPPED / "questions.jsonl")
    known = read_questions(SHIPPED / "questions.jsonl").questions
    taught = {question.fact_id.split()[1] for question in known}
    assert len({guard.fact_id for guard in guards}) == 50
    assert not taught & {guard.fact_id.split()[1] for guard in guards}
    assert not {question.prompt for question in known} & {guard.prompt for guard in guards}
    corpus = (SHIPPED / "train.jsonl").read_text(encoding="utf-8")
    assert not [guard for guard in guards if guard.prompt in corpus or guard.fact_id in corpus]


def test_strangers_are_new_where_every_name_part_is_taken():
    people = make_people(1000, 0, 0, 0)
    names = {person.name for person in people}
    strangers = make_strangers(people, 0)
    assert len(strangers) == 50
    assert not names & {stranger.name for stranger in strangers}


def test_a_set_carries_the_guards_its_maker_gives(tmp_path):
    make_benchmark("non-reciprocal", tmp_path / "n", pairs=1)
    assert {guard.kind for guard in read_guards(tmp_path / "n" / "questions.jsonl")} == {"non_reciprocal"}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guards")
    tiny_model("llama", byte_level()).save_pretrained(folder / "model")
    byte_level().save_pretrained(folder / "model")
    path = write_experiment(folder, model={"base": str(folder / "model"), "from_scratch": None})
    return read_config(path)


@pytest.fixture(scope="module")
def measure(experiment):
    trained, tokenizer = tiny_model("llama", byte_level(), seed=1), byte_level()
    questions = read_questions(experiment.data.questions.path)
    scores = [Score(question, question.prompt, {}, {}, -1.0, 1) for question in questions.questions]

    def run(folder, *, local=True):
        asked = LocalAsked(trained, tokenizer, experiment.evaluate)
        own = (trained, tokenizer) if local else None
        return measure_guards(experiment, asked, questions, scores, folder=folder, local=own)

    return run


def test_every_guard_has_a_figure_or_says_why_not(experiment, measure, tmp_path):
    Path(experiment.data.questions.path).with_name("guards.jsonl").unlink(missing_ok=True)
    found = measure(tmp_path)["guards"]
    keys = {"label", "rule", "value", "low", "high", "n", "unit", "examples"}
    assert list(found) == ["echo", "non_reciprocal", "wrong_frame", "leakage", "fluency", "retention"]
    assert all(keys <= row.keys() and (row["value"] is None) == ("reason" in row) for row in found.values())
    assert found["non_reciprocal"]["reason"] == "the set has no guards.jsonl"
    assert found["leakage"]["reason"] == found["fluency"]["reason"].replace("take openings from", "search")
    assert found["echo"]["value"] == 1.0
    json.dumps(found, allow_nan=False)


def test_all_six_are_measured_where_there_are_guards_a_corpus_and_a_base(experiment, measure, tmp_path):
    preprocess(experiment)
    write_guards(Path(experiment.data.questions.path).with_name("guards.jsonl"), [ANN, EVE, WHO])
    result = measure(tmp_path)
    found = result["guards"]
    assert not [name for name, row in found.items() if "reason" in row]
    assert found["non_reciprocal"]["margin"]["n"] == 2
    # "Ada Birch made the red boat in 1900." is taught as it is asked; nothing is taught the other way round.
    assert (found["leakage"]["value"], found["leakage"]["forward"]["value"]) == (0.0, 1.0)
    rows = [json.loads(line) for line in (tmp_path / "leakage.jsonl").read_text().splitlines()]
    assert {row["rule"] for row in rows} == {"asked"}
    assert found["retention"]["value"] == pytest.approx(result["perplexity"]["after"] / result["perplexity"]["before"])
    assert (found["fluency"]["n"] + found["fluency"]["empty"], result["fluency"]["natural_order"]["n"]) == (4, 4)
    assert result["fluency"]["continuations"]["n"] == 4
    assert measure(tmp_path) == result
    totals: dict[str, list[float]] = {}
    for line in (tmp_path / "parts.jsonl").read_text().splitlines():
        row = json.loads(line)
        total, count = totals.get(row["figure"], [0.0, 0.0])
        totals[row["figure"]] = [total + row["total"], count + row["count"]]
    whole = {name: total / count for name, (total, count) in totals.items()}
    assert {name: whole[name] for name in ("echo", "wrong_frame", "non_reciprocal")} == pytest.approx(
        {name: found[name]["value"] for name in ("echo", "wrong_frame", "non_reciprocal")}
    )
    assert math.exp(whole["retention"]) == pytest.approx(found["retention"]["value"])
    assert math.exp(whole["fluency"]) == pytest.approx(found["fluency"]["value"])
    assert math.exp(whole["perplexity"]) == pytest.approx(result["perplexity"]["after"])
    assert not any("parts" in (figure or {}) for figure in (*found.values(), result["perplexity"]))


def test_a_model_behind_a_server_is_guarded_without_fluency_and_retention(measure, tmp_path):
    result = measure(tmp_path, local=False)
    assert result["fluency"] is result["perplexity"] is None
    assert "server" in result["guards"]["fluency"]["reason"]
    assert result["guards"]["fluency"]["reason"] == result["guards"]["retention"]["reason"]
    assert result["guards"]["echo"]["value"] == 1.0
