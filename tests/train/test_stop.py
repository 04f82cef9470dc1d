"""A signal saves and ends with a code of its own; what follows is as if it had not come."""

import os
import signal
from pathlib import Path

import pytest
from experiment import log, weights, write_experiment

import spt.train.loop
import spt.train.stop
from spt.config import read_config
from spt.errors import StoppedError
from spt.preprocess import preprocess
from spt.train import train
from spt.train.stop import SIGNALS, stoppable

LEARN = {"epochs": 3, "logging_steps": 4, "save_steps": 100, "eval_steps": 5, "dataloader_num_workers": 0}


@pytest.mark.parametrize(("number", "calls"), [(signal.SIGTERM, 6), (signal.SIGTERM, 3), (signal.SIGINT, 1)])
def test_a_stopped_run_ends_with_the_weights_and_the_log_of_one_that_was_left_alone(
    tmp_path, monkeypatch, number, calls
):
    """Also where nothing is in the log yet, and where nothing was learned."""
    for folder in ("whole", "stopped"):
        preprocess(read_config(write_experiment(tmp_path / folder, train=LEARN)))
    train(read_config(tmp_path / "whole/experiment.yaml"))
    stopped, learn, steps = read_config(tmp_path / "stopped/experiment.yaml"), spt.train.loop.learn, []

    def interrupted(*arguments, **options):
        steps.append(1)
        if len(steps) == calls:
            signal.raise_signal(number)
        return learn(*arguments, **options)

    monkeypatch.setattr(spt.train.loop, "learn", interrupted)
    with pytest.raises(StoppedError, match=f"stopped by {number.name} after step {calls - 1} of 12") as caught:
        train(stopped)
    assert caught.value.exit_code == 75
    found = [path.name for path in (tmp_path / "stopped/run/train/checkpoints").glob("step-*")]
    assert found == ([f"step-{calls - 1:06d}"] if calls > 1 else [])
    train(stopped)
    assert weights(tmp_path / "stopped/run") == weights(tmp_path / "whole/run")
    assert log(tmp_path / "stopped/run") == log(tmp_path / "whole/run")


def test_a_signal_during_the_last_save_ends_the_run_as_any_other_does(tmp_path, monkeypatch):
    settings = read_config(write_experiment(tmp_path, train=LEARN))
    preprocess(settings)
    save = spt.train.loop.save_checkpoint

    def interrupted(folder, state, *rest):
        save(folder, state, *rest)
        if state.step == 12:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(spt.train.loop, "save_checkpoint", interrupted)
    with pytest.raises(StoppedError, match="stopped by SIGTERM after step 12 of 12"):
        train(settings)
    assert (train(settings) / "final").is_dir()


def test_an_echo_of_a_signal_is_the_same_signal_and_a_later_one_ends_at_once(tmp_path, monkeypatch):
    killed, clock = [], [100.0]
    monkeypatch.setattr(os, "kill", lambda *arguments: killed.append(arguments))
    monkeypatch.setattr(spt.train.stop.time, "monotonic", lambda: clock[0])
    with stoppable(tmp_path) as stop:
        assert stop.vote() == 0
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert (stop.vote(), killed) == (1, [])
        clock[0] += 1.5
        signal.raise_signal(signal.SIGTERM)
        assert killed == [(os.getpid(), signal.SIGTERM)]
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_handlers_are_put_back_and_an_ignored_signal_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup and `command &` do
    try:
        was = [signal.getsignal(number) for number in SIGNALS]
        with stoppable(tmp_path) as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.vote() == 0
        assert [signal.getsignal(number) for number in SIGNALS] == was
    finally:
        signal.signal(signal.SIGINT, before)


def failing_in(folder: Path) -> list[str]:
    with pytest.raises(ZeroDivisionError) as caught, stoppable(folder):
        _ = 1 / 0
    return caught.value.__notes__


def test_a_failure_names_the_last_good_checkpoint(tmp_path):
    assert failing_in(tmp_path) == ["No checkpoint was written yet."]
    for step in (3, 12, 6):
        (tmp_path / f"checkpoints/step-{step:06d}").mkdir(parents=True)
        (tmp_path / f"checkpoints/step-{step:06d}/state.json").write_text("{}")
    assert failing_in(tmp_path) == [f"Last good checkpoint: {tmp_path}/checkpoints/step-000012."]
