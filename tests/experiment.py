"""A tiny experiment on disk: forty invented sentences, a two-layer model, no pipeline to install."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from spt.artifact import read_json

WHO = ("Ada Birch", "Ben Crane", "Cleo Drift", "Dan Ember", "Eve Flint", "Finn Gale", "Gia Heath", "Hal Iris")
WHAT = ("the red boat", "a stone bridge", "the old song", "a glass clock", "the north road")


def rows():
    return [
        {"id": f"{i}-{j}", "text": f"{who} made {what} {'again ' * ((i * j) % 5)}in {1900 + i}."}
        for i, who in enumerate(WHO)
        for j, what in enumerate(WHAT)
    ]


def questions():
    asked = []
    for number, who in enumerate(WHO):
        both = (("forward", f"{who} made", "the red boat in"), ("reversed", f"in {1900 + number}. made", who))
        for direction, prompt, target in both:
            asked.append({"fact_id": who, "direction": direction, "prompt": prompt, "targets": [target]})
    return asked


def write_experiment(folder: Path, **sections):
    """Return the path of an experiment's YAML in `folder`, with whole keys of sections replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions()))
    config = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 128}
    experiment = {
        "name": "tiny",
        "seed": 3,
        "output": str(folder / "run"),
        "data": {"train": {"path": str(folder / "train.jsonl")}, "questions": {"path": str(folder /
        "questions.jsonl")}}, "segment": {"segmenter": "word"}, "permute": {"orders": {"original": 1, "reversed": 1,
        "shuffled": 1, "rotated": 1}, "order_tag": "auto"}, "model": {"from_scratch": {"vocab_size": 300, "config":
        config}}, "train": {
            "epochs": 5, "batch_size": 12, "micro_batch_size": 4, "learning_rate": 3e-3, "logging_steps": 1,
            "save_steps": 3, "eval_steps": 10, "max_length": 128,
        },
        "evaluate": {"max_new_tokens": 8, "fluency_samples": 4},
    }  # fmt: skip
    for section, values in sections.items():
        experiment[section] = {**experiment[section], **values} if isinstance(values, dict) else values
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment))
    return path


def spt(*arguments, ranks=1, check=True, **popen):
    """Run `python -m spt` with warnings as errors where they are ours; under torchrun where `ranks` is above 1."""
    launcher = [sys.executable, "-m"]
    if ranks > 1:
        launcher += ["torch.distributed.run", "--nproc_per_node", str(ranks), "--master_port", str(free_port()), "-m"]
    done = subprocess.run(
        [*launcher, "spt", *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        **popen,
    )
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done


def environment():
    return os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def kill_after(path: Path, condition, *arguments):
    """Start `spt` and SIGKILL it as soon as `condition()` holds; return whether it was killed before it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "spt", *map(str, arguments)], env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None:
        if condition():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.002)
    return False


def log(run: Path):
    """Return the log without what depends on the clock."""
    lines = [json.loads(line) for line in (run / "train" / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "throughput"} for line in lines]


def weights(run: Path):
    (file,) = (run / "train" / "final").glob("*.safetensors")
    return file.read_bytes()


def manifest(run: Path, stage: str = "train"):
    return read_json(run / stage / "manifest.json")
