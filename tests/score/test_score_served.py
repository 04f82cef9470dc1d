"""An evaluation that asks a server keeps what was answered; another run asks for the rest alone, or gives it up."""

import json

import pytest
from experiment import write_experiment
from misbehaving import Served, asked, serving, status

from spt.artifact import read_json
from spt.benchmark.guards import write_guards
from spt.config import read_config
from spt.errors import ConfigError, InputError, WorkError
from spt.records import Guard
from spt.score.evaluate import evaluate


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("spt.assistant.patience.FIRST", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def evaluated(folder, script, metrics=("exact", "contains", "logprob", "mrr"), headline="exact"):
    with serving(script) as url:
        server = {"model": "tiny", "base_url": url, "timeout": 2.0, "max_retries": 0}
        settings = {"max_new_tokens": 8, "metrics": list(metrics), "headline": headline}
        path = write_experiment(folder, evaluate={"server": server, **settings})
        return read_json(evaluate(read_config(path)) / "summary.json")


def test_an_evaluation_leaves_out_what_was_not_answered_and_the_next_run_asks_for_that_alone(tmp_path):
    with pytest.raises(WorkError, match=r"leaves out 1 questions that the server did not answer \(refused 1\)"):
        evaluated(tmp_path, Served(Ada_Birch_made=[status(400)]))
    summary = read_json(tmp_path / "run/evaluate/summary.json")
    assert (summary["unanswered"], summary["model"]) == ({"refused": 1}, "tiny")
    assert (summary["forward"]["n_questions"], summary["reversed"]["n_questions"]) == (7, 8)
    mended = Served()
    summary = evaluated(tmp_path, mended)
    assert (summary["unanswered"], summary["no_log_probabilities"]) == ({}, None)
    assert summary["forward"]["n_questions"] == 8
    assert {"logprob", "mrr"} <= summary["forward"].keys()
    # Besides the probe, ranks want the target that was left out after every prompt.
    assert "Ada Birch made" in {asked(request) for request in mended.requests}
    assert all("echo" in request or asked(request) == "Ada Birch made" for request in mended.requests)


def test_what_is_refused_twice_is_counted_and_does_not_hold_the_rest_back(tmp_path):
    script = {"Ada_Birch_made": [status(400)], "Ben_Crane_made": [status(503)]}
    with pytest.raises(WorkError, match=r"leaves out 2 questions .*\(refused 1, server_error 1\)"):
        evaluated(tmp_path, Served(**script))
    rows = [json.loads(line) for line in (tmp_path / "run/evaluate/unanswered.jsonl").read_text().splitlines()]
    assert sorted(row["reason"] for row in rows) == ["refused", "server_error"]
    # Ben's had not been refused before, only lost; Ada's had, and is final.
    with pytest.raises(WorkError, match=r"\(refused 2\)"):
        evaluated(tmp_path, Served(Ada_Birch_made=[status(400)], Ben_Crane_made=[status(400)]))
    summary = evaluated(tmp_path, Served(Ada_Birch_made=[status(400)]))
    assert summary["unanswered"] == {"refused": 1}
    assert (summary["forward"]["n_questions"], summary["reversed"]["n_questions"]) == (7, 8)
    assert read_json(tmp_path / "run/evaluate/manifest.json")["questions"] == 15
    idle = Served()
    evaluated(tmp_path, idle)
    assert idle.requests == []  # it is finished


def test_a_target_that_is_refused_after_any_prompt_costs_only_its_own_question(tmp_path):
    class Picky(Served):
        def next(self, request):
            refused = request.get("echo") and asked(request).endswith("Ada Birch")
            return status(400) if refused else super().next(request)

    with pytest.raises(WorkError, match=r"leaves out 1 questions"):
        evaluated(tmp_path, Picky())
    summary = read_json(tmp_path / "run/evaluate/summary.json")
    assert (summary["forward"]["n_questions"], summary["reversed"]["n_questions"]) == (8, 7)
    assert summary["reversed"]["logprob"]["floor"] < 0


def guards(folder, *names):
    rows = [Guard(name, name, "non_reciprocal", f"{name} was made by", (name,)) for name in names]
    folder.mkdir(exist_ok=True)
    write_guards(folder / "guards.jsonl", [*rows, Guard("w", "w", "wrong_frame", "Nobody made", ())])


def test_a_guard_that_is_refused_is_counted_and_ends_nothing(tmp_path):
    guards(tmp_path, "Kim", "Lou", "Max")
    summary = evaluated(tmp_path, Served(Kim_was_made_by=[status(400)], Nobody_made=[status(400)]))
    turned, framed = (summary["guards"][kind] for kind in ("non_reciprocal", "wrong_frame"))
    assert (turned["unanswered"], turned["n"], turned["margin"]["n"]) == ({"refused": 1}, 2, 2)
    assert framed["unanswered"] == {"refused": 1}
    assert (framed["value"], framed["reason"]) == (None, "the server answered none of its prompts")
    assert (tmp_path / "run/evaluate/manifest.json").exists()


def test_a_guard_that_a_busy_server_did_not_answer_is_asked_again(tmp_path):
    guards(tmp_path, "Kim", "Lou")
    with pytest.raises(WorkError, match=r"leaves out 1 guards .*\(server_error 1\)"):
        evaluated(tmp_path, Served(Kim_was_made_by=[status(503)]))
    mended = Served()
    assert evaluated(tmp_path, mended)["guards"]["non_reciprocal"]["n"] == 2
    assert {asked(request) for request in mended.requests if "echo" not in request} == {"Kim was made by"}


def test_without_log_probabilities_an_evaluation_has_the_other_metrics_and_says_why(tmp_path):
    summary = evaluated(tmp_path, Served(echo=False))
    assert "does not send those of the prompt back" in summary["no_log_probabilities"]
    assert summary["forward"]["exact"]["value"] == 0
    assert not {"logprob", "mrr"} & summary["forward"].keys()
    assert (summary["fluency"], summary["perplexity"]) == (None, None)


def test_a_headline_of_log_probabilities_that_a_server_lacks_is_refused_before_it_is_asked_anything(tmp_path):
    script = Served(echo=False)
    with pytest.raises(ConfigError, match=r"evaluate\.headline: mrr is made of log-probabilities.*does not send"):
        evaluated(tmp_path, script, headline="mrr")
    assert len(script.requests) == 1  # whether it has them


def test_a_model_is_named_in_one_place(tmp_path):
    path = write_experiment(tmp_path, evaluate={"server": {"model": "tiny", "base_url": "http://localhost:1/v1"}})
    with pytest.raises(InputError, match=r"evaluate\.server says which model is asked"):
        evaluate(read_config(path), model="other")
