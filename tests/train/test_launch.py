"""`--launch N`: the world that was asked for, or an error; a rank that dies or is stopped ends all of them."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from accelerate.commands import launch as accelerate_launch
from accelerate.utils.launch import prepare_simple_launcher_cmd_env
from experiment import environment, free_port, log, spt, weights, write_experiment
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from spt.config import read_config
from spt.errors import InputError
from spt.preprocess import preprocess
from spt.train import ranks as ranks_module
from spt.train.launch import _cause, must_launch
from spt.train.ranks import asked_world, check_devices

LEARN = {"epochs": 10, "save_steps": 3, "eval_steps": None, "dataloader_num_workers": 0}
MINUTE = 60.0


def experiment(folder, **train):
    path = write_experiment(folder, train={**LEARN, **train})
    preprocess(read_config(path))
    return path


def end_rank(path: Path, rank: int, send, *, lines: int = 6):
    """Return (exit code, standard error, seconds to the end) of a run of two, one of which is ended as it trains."""
    metrics = path.parent / "run/train/metrics.jsonl"
    before = metrics.read_text().count("\n") if metrics.exists() else 0
    command = [sys.executable, "-m", "spt", "train", str(path), "--launch", "2"]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    while not metrics.exists() or metrics.read_text().count("\n") < before + lines:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    (chosen,) = (child for child in psutil.Process(process.pid).children() if child.environ()["RANK"] == str(rank))
    send(chosen)
    since = time.monotonic()
    _, said = process.communicate(timeout=2 * MINUTE)
    return process.returncode, said, time.monotonic() - since


def test_a_rank_that_is_killed_or_stopped_ends_the_run_and_the_next_one_goes_on_as_if_it_had_not(tmp_path):
    whole, broken = experiment(tmp_path / "whole"), experiment(tmp_path / "broken")
    spt("train", whole, "--launch", 2)
    assert '"world_size": 2' in (tmp_path / "whole/run/train/timings.json").read_text()

    code, said, seconds = end_rank(broken, 1, psutil.Process.kill)
    assert (code, seconds < MINUTE) == (128 + 9, True)
    assert "rank 1 of 2 was killed by SIGKILL" in said
    assert "/run/train/checkpoints/step-0000" in said
    assert "Traceback" not in said

    code, said, seconds = end_rank(broken, 1, psutil.Process.terminate)
    assert (code, seconds < MINUTE) == (75, True), said
    assert "stopped by a signal to another rank after step" in said
    assert "Traceback" not in said

    spt("train", broken, "--launch", 2)
    assert weights(tmp_path / "broken/run") == weights(tmp_path / "whole/run")
    assert log(tmp_path / "broken/run") == log(tmp_path / "whole/run")


FAILS_ON_ONE_RANK = """
import os
import spt.train.loop
from spt.cli import main

learn = spt.train.loop.learn

def failing(*arguments, number, **options):
    if number == 5 and os.environ["RANK"] == "1":
        raise ZeroDivisionError("broken on one rank")
    return learn(*arguments, number=number, **options)

spt.train.loop.learn = failing
main()
"""


def test_the_traceback_of_a_rank_that_fails_is_shown_once_with_the_last_good_checkpoint(tmp_path):
    path, program = experiment(tmp_path, epochs=2), tmp_path / "failing.py"
    program.write_text(FAILS_ON_ONE_RANK)
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port())]
    command = [sys.executable, *torchrun, str(program), "train", str(path)]
    started = time.monotonic()
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=2 * MINUTE)
    assert done.returncode != 0
    assert time.monotonic() - started < MINUTE
    assert done.stderr.count("ZeroDivisionError: broken on one rank") == 1
    assert "rank 1: Traceback" in done.stderr
    assert "rank 0: Traceback" not in done.stderr
    assert "Last good checkpoint:" in done.stderr
    assert "checkpoints/step-000003" in done.stderr


def test_what_the_user_got_wrong_is_said_once_however_many_ranks_find_it(tmp_path):
    path = experiment(tmp_path, max_length=2000)  # more than the model has positions: every rank sees it
    done = spt("train", path, "--launch", 2, check=False)
    assert done.returncode == 2
    assert done.stderr.count("train.max_length: 2000 tokens") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("given", "ranks", "answer"),
    [
        ({}, None, False),
        ({}, 1, False),
        ({}, 2, True),
        ({"WORLD_SIZE": "2", "RANK": "0"}, 2, False),
        ({"WORLD_SIZE": "8", "SLURM_STEP_NUM_TASKS": "1"}, None, False),
    ],
)
def test_processes_are_started_where_no_launcher_did(given, ranks, answer):
    assert must_launch(ranks, given) is answer


@pytest.mark.parametrize("given", [{"WORLD_SIZE": "8"}, {"WORLD_SIZE": "1"}, {"OMPI_COMM_WORLD_SIZE": "4"}])
def test_a_launcher_that_started_another_number_is_refused(given):
    with pytest.raises(InputError, match=f"--launch 2, but a launcher started {next(iter(given.values()))} processes"):
        must_launch(2, given)


def settings_of(*options):
    """Return the environment that accelerate's launcher gives the one process it starts without a GPU."""
    parser = accelerate_launch.launch_command_parser()
    arguments, *_ = accelerate_launch._validate_launch_command(parser.parse_args([*options, "-m", "spt"]))
    return prepare_simple_launcher_cmd_env(arguments)[1]


def test_accelerate_launch_that_starts_one_process_of_several_is_found_out(monkeypatch):
    for name in ("MASTER_ADDR", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert asked_world(settings_of("--cpu", "--num_processes", "1")) == 1
    with pytest.raises(InputError, match="asked for several processes and started one"):
        asked_world(settings_of("--cpu", "--num_processes", "2"))


def test_more_processes_than_devices_are_refused(monkeypatch):
    monkeypatch.setattr(ranks_module, "count_devices", lambda: 2)
    check_devices(2)
    with pytest.raises(InputError, match="3 processes on this machine, but it has 2 devices"):
        check_devices(3)


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        ({0: (1, 10), 1: (-9, 11)}, (1, -9)),  # rank 0 lost its connection to the killed one
        ({0: (-15, 10), 1: (2, 10)}, (1, 2)),  # the agent ended rank 0
        ({0: (-9, 41), 1: (1, 10)}, (1, 1)),  # the agent ended rank 0 after half a minute
        ({0: (75, 10), 1: (75, 10)}, (0, 75)),
        ({0: (-15, 10), 1: (-15, 10)}, (0, -15)),
        ({0: (1, 10), 1: (2, 10)}, (1, 2)),
    ],
)
def test_the_rank_that_failed_first_is_named(codes, cause):
    failures = {}
    for rank, (code, seconds) in codes.items():
        failures[rank] = ProcessFailure(local_rank=rank, pid=1, exitcode=code, error_file="none")
        failures[rank].timestamp = seconds
    assert _cause(failures) == cause
