"""Scores are on the disk chunk by chunk, and a killed evaluation ends with the same bytes."""

import errno
import json
import math
from pathlib import Path

import pytest
from experiment import kill_after, write_experiment
from experiment import spt as run_spt
from fakes import byte_level, tiny_model

import spt.score.questions
from spt.artifact import open_stage
from spt.config import Evaluate
from spt.records import Question
from spt.score import LocalAsked
from spt.score.questions import chunk_size, score_chunks
from spt.score.stream import ScoreFile, score_of, score_row

SETTINGS = Evaluate(metrics=("exact", "contains", "logprob", "choice"), max_new_tokens=4)
QUESTIONS = [
    Question(f"q{n}", f"f{n // 2}", ("forward", "reversed")[n % 2], f"Ann {n}", (f"Lake {n}.",), ("a",) * (n % 3))
    for n in range(11)
]


@pytest.fixture(scope="module")
def asked():
    return LocalAsked(tiny_model("llama", byte_level()), byte_level(), SETTINGS)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(spt.score.questions, "CHUNK", 4)


def run(asked, file, stop=None):
    """Score what the file lacks; return how much it held."""
    done = file.resume(QUESTIONS, chunk_size(SETTINGS, 1))
    for scores in score_chunks(asked, QUESTIONS, SETTINGS, done=done):
        file.append(scores)
    return done


def test_whatever_part_of_a_file_was_written_it_ends_with_the_same_bytes(asked, tmp_path):
    file = ScoreFile(tmp_path / "scores.jsonl", SETTINGS.metrics)
    assert run(asked, file) == 0
    whole = file.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for kept in (0, 1, len(lines[0]), len(b"".join(lines[:4])), len(b"".join(lines[:5])) - 1, len(whole) - 1):
        file.path.write_bytes(whole[:kept])
        assert run(asked, file) == (4 if kept >= len(b"".join(lines[:4])) else 0) + (
            4 if kept > len(b"".join(lines[:8])) else 0
        )
        assert file.path.read_bytes() == whole
    file.path.write_bytes(b"".join(lines[:4]) + lines[9] + b"".join(lines[5:]))
    assert run(asked, file) == 4
    assert file.path.read_bytes() == whole
    assert run(asked, file) == len(QUESTIONS)


@pytest.mark.parametrize(
    "damage",
    [
        {"exact": "x"}, {"exact": None}, {"exact": 5.0}, {"contains_floor": [0.0]}, {"logprob": "x"}, {"logprob": 5.0},
        {"prediction": 5}, {"relation": [1]}, {"direction": "up"}, {"targets": None}, {"prompt": "another"},
        {"target_tokens": 1.5}, {"distractor_logprobs": ["x"]},
    ],
)  # fmt: skip
def test_a_score_that_is_not_as_it_was_written_is_made_again(asked, tmp_path, damage):
    file = ScoreFile(tmp_path / "scores.jsonl", SETTINGS.metrics)
    run(asked, file)
    whole = file.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    lines[5] = json.dumps(json.loads(lines[5]) | damage).encode() + b"\n"
    file.path.write_bytes(b"".join(lines))
    assert run(asked, file) == 4
    assert file.path.read_bytes() == whole


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_named(asked):
    scores = next(score_chunks(asked, QUESTIONS, SETTINGS))
    with pytest.raises(OSError, match="/dev/full") as caught:
        ScoreFile(Path("/dev/full"), SETTINGS.metrics).append(scores)
    assert caught.value.errno == errno.ENOSPC


def test_a_score_comes_back_from_its_row(asked, tmp_path):
    file = ScoreFile(tmp_path / "scores.jsonl", SETTINGS.metrics)
    scores = [score for chunk in score_chunks(asked, QUESTIONS, SETTINGS) for score in chunk]
    file.append(scores)
    assert list(file.read()) == scores
    without = score_row(scores[0]) | {"logprob": None}
    del without["logprob"]
    assert math.isnan(score_of(without, ("exact",)).logprob)


def test_a_model_without_log_probabilities_leaves_their_columns_out(tmp_path):
    class Server:
        has_log_probabilities = False

        def generate(self, prompts, *, max_new_tokens, sample_seed=None):
            return ["Lake 0." for _ in prompts]

    scores = [score for chunk in score_chunks(Server(), QUESTIONS, SETTINGS) for score in chunk]
    assert scores[0].metrics == {"exact": 1.0, "contains": 1.0}
    assert "logprob" not in score_row(scores[0])


def test_a_killed_evaluation_goes_on_and_ends_with_the_same_bytes(tmp_path):
    model = tmp_path / "model"
    tiny_model("llama", byte_level()).save_pretrained(model)
    byte_level().save_pretrained(model)
    path = write_experiment(
        tmp_path, model={"base": str(model), "from_scratch": None}, evaluate={"max_new_tokens": 8, "fluency_samples": 0}
    )
    rows = [
        {"fact_id": f"f{n}", "direction": "forward", "prompt": f"Ann {n}", "targets": [f"the {n}th"]}
        for n in range(1200)
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = tmp_path / "run/evaluate/scores.jsonl"
    command = ("evaluate", path, "--model", model)
    assert kill_after(scores, lambda: scores.exists() and scores.read_bytes().count(b"\n") >= 512, *command)
    assert not (tmp_path / "run/evaluate/manifest.json").exists()
    held = scores.read_bytes()
    said = run_spt(*command).stderr
    assert "going on after 512 of 1200" in said or "going on after 1024 of 1200" in said
    ended = scores.read_bytes()
    assert ended.startswith(held)
    assert len(ended.splitlines()) == 1200
    run_spt(*command, "--output", tmp_path / "other")
    assert (tmp_path / "other/evaluate/scores.jsonl").read_bytes() == ended
    with open_stage(tmp_path / "run/evaluate", json.loads((tmp_path / "run/evaluate/key.json").read_text())) as stage:
        assert stage.finished
