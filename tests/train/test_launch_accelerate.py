"""The files for `accelerate launch`: every key is accelerate's own, and the one that runs on CPUs trains."""

import subprocess
import sys
from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import launch_command_parser
from experiment import environment, free_port, log, write_experiment

from spt.config import read_config
from spt.preprocess import preprocess
from spt.train import train

STRATEGIES = Path(__file__).parents[2] / "configs/accelerate"
FILES = sorted(STRATEGIES.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_key_of_a_file_is_one_that_accelerate_reads(file):
    settings = load_config_from_file(str(file))  # refuses keys of the top level that it does not know
    options = vars(launch_command_parser().parse_args(["train.py"]))
    inner = [*settings.fsdp_config, *settings.deepspeed_config]
    assert [key for key in inner if key not in options] == []
    assert settings.num_processes == 8


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_opens_with_its_command_and_says_whether_it_was_run(file):
    head = file.read_text().split("compute_environment")[0]
    assert head.startswith(f"# accelerate launch --config_file configs/accelerate/{file.name} -m spt train ")
    assert "Not run" in head


def test_ddp_on_two_processes_gives_the_losses_of_one(tmp_path):
    settings = {"epochs": 3, "eval_steps": None, "dataloader_num_workers": 0}
    for folder in ("one", "two"):
        preprocess(read_config(write_experiment(tmp_path / folder, train=settings)))
    train(read_config(tmp_path / "one/experiment.yaml"))
    file, port = str(STRATEGIES / "ddp.yaml"), str(free_port())
    options = ["--config_file", file, "--num_processes", "2", "--main_process_port", port]
    command = [
        "-m",
        "accelerate.commands.launch",
        *options,
        "-m",
        "spt",
        "train",
        str(tmp_path / "two/experiment.yaml"),
    ]
    done = subprocess.run([sys.executable, *command], env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"world_size": 2' in (tmp_path / "two/run/train/timings.json").read_text()
    one, two = ([line["loss"] for line in log(tmp_path / folder / "run")] for folder in ("one", "two"))
    assert two == pytest.approx(one, abs=1e-5)
