"""Same examples, same losses, same weights: whatever the ranks, the micro-batches, and the moment of a kill."""

import json
import random
from pathlib import Path

import pytest
import torch
from experiment import kill_after, log, manifest, spt, weights, write_experiment

from spt.config import read_config
from spt.errors import NonFiniteError, StaleError
from spt.preprocess import preprocess
from spt.train import train
from spt.train.setup import Stream, prepare


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An uninterrupted run of 20 steps, in a process of its own."""
    path = write_experiment(tmp_path_factory.mktemp("whole"))
    spt("preprocess", path)
    spt("train", path)
    return path


def losses(run):
    return [line["loss"] for line in log(run) if "loss" in line]


def stream_of(path, *, rank=0, world_size=1, overrides=()):
    config = read_config(path, overrides)
    folder = Path(config.output) / "train"
    folder.mkdir(parents=True, exist_ok=True)
    data, prepared = prepare(config, folder)
    from spt.encode import Encoder

    encoder = Encoder(prepared.tokenizer, prepared.tag, config.train.max_length)
    return Stream(data, encoder, config.segment, config.permute, config.train, config.seed, 0, rank, world_size)


def rows_of(batches):
    return sorted(
        tuple(ids[mask.bool()].tolist())
        for batch in batches
        for ids, mask, labels in zip(batch.input_ids, batch.attention_mask, batch.labels, strict=True)
        if (labels != -100).any()
    )


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
    assert json.loads((tmp_path / "two/run/train/timings.json").read_text())["world_size"] == 2
    assert manifest(tmp_path / "one/run")["target_tokens"] == manifest(tmp_path / "two/run")["target_tokens"]


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_ranks_share_the_stream_of_one_process_without_loss_or_repeat(finished, world_size):
    whole = list(stream_of(finished).steps(0))
    parts = [list(stream_of(finished, rank=rank, world_size=world_size).steps(0)) for rank in range(world_size)]
    for step, (ids, batches) in enumerate(whole):
        shared = [batch for part in parts for batch in part[step][1]]
        assert all(part[step][0] == ids for part in parts)
        assert len({len(part[step][1]) for part in parts}) == 1, "ranks must take the same number of micro-batches"
        assert rows_of(shared) == rows_of(batches)


def test_an_epoch_holds_every_record_once_and_draws_orders_anew(finished):
    stream = stream_of(finished)
    steps = list(stream.steps(0))
    per_epoch = stream.steps_per_epoch
    for epoch in range(2):
        ids = [name for names, _ in steps[epoch * per_epoch : (epoch + 1) * per_epoch] for name in names]
        assert len(ids) == len(set(ids)) == 40
    first, second = (rows_of([b for _, bs in steps[e * per_epoch : (e + 1) * per_epoch] for b in bs]) for e in (0, 1))
    assert first != second


def test_the_stream_from_any_step_is_the_rest_of_the_whole_stream(finished):
    whole = list(stream_of(finished).steps(0))
    for done in (1, 3, 4, 7, 19):
        rest = list(stream_of(finished).steps(done))
        assert [ids for ids, _ in rest] == [ids for ids, _ in whole[done:]]
        assert [rows_of(batches) for _, batches in rest] == [rows_of(batches) for _, batches in whole[done:]]


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

    def broken(self, *arguments):
        calls.append(1)
        loss = original(self, *arguments)
        return loss * float("nan") if len(calls) > 12 else loss

    monkeypatch.setattr(CausalLoss, "forward", broken)
    with pytest.raises(NonFiniteError, match="step 5: the loss is nan; nothing was updated"):
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
