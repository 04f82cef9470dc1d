"""Same examples, same losses, same weights: whatever the ranks, the micro-batches, and the moment of a kill."""

import json
import random

import pytest
import torch
from experiment import kill_after, log, manifest, spt, weights, write_experiment

from spt.config import read_config
from spt.errors import NonFiniteError, StaleError
from spt.preprocess import preprocess
from spt.train import train


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An uninterrupted run of 20 steps, in a process of its own."""
    path = write_experiment(tmp_path_factory.mktemp("whole"))
    spt("preprocess", path)
    spt("train", path)
    return path


def losses(run):
    return [line["loss"] for line in log(run) if "loss" in line]


def test_two_processes_give_the_losses_of_one_over_fifty_steps(tmp_path):
    settings = {"epochs": 13, "batch_size": 12, "micro_batch_size": 12, "eval_steps": None}
    one = write_experiment(tmp_path / "one", train=settings)
    two = write_experiment(tmp_path / "two", train=settings)
    for path in (one, two):
        spt("preprocess", path)
    spt("train", one)
    spt("train", two, ranks=2)
    first, second = losses(tmp_path / "one/run")[:50], losses(tmp_path / "two/run")[:50]
    assert len(first) == 50
    assert first == pytest.approx(second, abs=1e-5)
    curves = [[line["learning_rate"] for line in log(tmp_path / name / "run")] for name in ("one", "two")]
    assert curves[0] == curves[1], "the schedule is stepped once a global step"
    assert json.loads((tmp_path / "two/run/train/timings.json").read_text())["world_size"] == 2
    assert manifest(tmp_path / "one/run")["target_tokens"] == manifest(tmp_path / "two/run")["target_tokens"]


def test_accumulation_does_not_change_the_losses(finished, tmp_path):
    path = write_experiment(tmp_path / "wide", train={"micro_batch_size": 12})
    preprocess(read_config(path))
    train(read_config(path))
    assert losses(tmp_path / "wide/run") == pytest.approx(losses(finished.parent / "run"), abs=1e-5)


@pytest.mark.parametrize("lines", [2, 8, 15])
def test_a_killed_run_ends_with_the_weights_and_the_log_of_an_uninterrupted_one(finished, tmp_path, lines):
    path = write_experiment(tmp_path)
    spt("preprocess", path)
    metrics = tmp_path / "run/train/metrics.jsonl"
    generator = random.Random(lines)
    target = lines + generator.random()

    def far_enough():
        return metrics.exists() and metrics.read_text().count("\n") >= target

    assert kill_after(path, far_enough, "train", path)
    assert not (tmp_path / "run/train/manifest.json").exists()
    spt("train", path)
    assert log(tmp_path / "run") == log(finished.parent / "run")
    assert weights(tmp_path / "run") == weights(finished.parent / "run")


def test_a_run_killed_while_it_writes_its_last_files_still_ends_the_same(finished, tmp_path):
    path = write_experiment(tmp_path)
    spt("preprocess", path)
    assert kill_after(path, lambda: any((tmp_path / "run/train").glob(".final.tmp")), "train", path)
    spt("train", path)
    assert weights(tmp_path / "run") == weights(finished.parent / "run")
    assert log(tmp_path / "run") == log(finished.parent / "run")


def test_a_finished_run_is_reused_and_another_configuration_is_refused_by_key(finished, capsys):
    before = weights(finished.parent / "run")
    train(read_config(finished))
    assert "reused" in capsys.readouterr().err
    with pytest.raises(StaleError, match=r"train\.learning_rate: 0\.003 -> 0\.001"):
        train(read_config(finished, ["train.learning_rate=1e-3"]))
    assert weights(finished.parent / "run") == before
    train(read_config(finished, ["train.logging_steps=2"]))  # changes no weight, so it is the same run


def test_a_loss_that_is_not_a_number_stops_before_the_update_and_names_the_step(tmp_path, monkeypatch):
    from spt.loss import CausalLoss

    path = write_experiment(tmp_path)
    preprocess(read_config(path))
    original, calls = CausalLoss.forward, []

    def broken(self, **inputs):
        calls.append(1)
        loss = original(self, **inputs)
        return loss * float("nan") if len(calls) > 12 else loss

    monkeypatch.setattr(CausalLoss, "forward", broken)
    with pytest.raises(NonFiniteError, match="step 5: the loss is nan; nothing of this step was saved"):
        train(read_config(path))
    state = sorted((tmp_path / "run/train/checkpoints").iterdir())[-1]
    assert state.name == "step-000003"
    assert all(
        torch.isfinite(t).all()
        for t in __import__("safetensors.torch").torch.load_file(state / "trained.safetensors").values()
    )


def test_too_long_records_are_counted_in_the_manifest(tmp_path):
    path = write_experiment(tmp_path, train={"max_length": 12, "too_long": "reject", "epochs": 2, "eval_steps": None})
    preprocess(read_config(path))
    train(read_config(path))
    assert manifest(tmp_path / "run")["counts"]["too_long_reject"] == 80


def test_the_checkpoints_kept_are_the_newest(finished):
    kept = sorted(path.name for path in (finished.parent / "run/train/checkpoints").iterdir())
    assert kept == ["step-000018", "step-000020"]
