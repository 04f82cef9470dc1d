"""A model spread over two processes learns what one process would have learned: FSDP2 and DeepSpeed, over gloo."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from experiment import environment, free_port, log, write_experiment
from safetensors.torch import load_file

from spt.config import read_config
from spt.preprocess import preprocess
from spt.train import train

HERE = Path(__file__).parent
STRATEGIES = HERE.parents[1] / "configs/accelerate"
TIED = {
    "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "tie_word_embeddings": True,
}  # fmt: skip
LORA = {"lora": {"r": 4, "target_modules": "all-linear"}, "dtype": "bfloat16"}
LEARN = {"epochs": 3, "eval_steps": None, "dataloader_num_workers": 0}
ANSWER = {**LEARN, "epochs": 2, "eval_steps": 4}


def train_sharded(strategy, path):
    ranks = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port())]
    program = [str(HERE / "over_gloo.py"), str(STRATEGIES / strategy), "train", str(path)]
    done = subprocess.run(
        [sys.executable, *ranks, *program], env=environment(), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]


def trained(folder):
    (file,) = (folder / "run/train/final").glob("*.safetensors")
    return load_file(file)


def base(folder):
    """Return a model folder whose head and embeddings are one tensor."""
    config = read_config(
        write_experiment(folder, model={"from_scratch": {"vocab_size": 300, "config": TIED}}, train=LEARN)
    )
    preprocess(config)
    return str(train(config) / "final")


@pytest.mark.parametrize(
    ("strategy", "model", "settings", "apart"),
    [
        ("fsdp2.yaml", {}, ANSWER, 1e-5),
        pytest.param("fsdp2.yaml", LORA, LEARN, 5e-3, marks=pytest.mark.full),
        ("deepspeed_zero3.yaml", {}, LEARN, 1e-5),
    ],
    ids=["fsdp2", "fsdp2-lora-bfloat16", "zero3"],
)
def test_a_sharded_model_learns_and_answers_as_a_whole_one(tmp_path, strategy, model, settings, apart):
    if strategy.startswith("deepspeed") and importlib.util.find_spec("deepspeed") is None:
        pytest.skip("deepspeed is not installed")
    model = {"from_scratch": None, "base": base(tmp_path / "base"), **model}
    for folder in ("whole", "sharded"):
        path = write_experiment(tmp_path / folder, model=model, train=settings, permute={"order_tag": None})
        preprocess(read_config(path))
        if folder == "whole":
            train(read_config(path))
        else:
            train_sharded(strategy, path)
    whole, sharded = log(tmp_path / "whole/run"), log(tmp_path / "sharded/run")
    assert [line.get("evaluate") for line in sharded] == [line.get("evaluate") for line in whole]
    for name in ("loss", "grad_norm"):
        expected = [line[name] for line in whole if name in line]
        assert [line[name] for line in sharded if name in line] == pytest.approx(expected, abs=apart)
    if apart == 1e-5:
        first, second = trained(tmp_path / "whole"), trained(tmp_path / "sharded")
        assert first.keys() == second.keys()
        assert all(torch.allclose(first[name], second[name], atol=1e-5) for name in first)
