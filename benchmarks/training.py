"""How fast, how small and how exact training is, against TRL's SFTTrainer and a bare PyTorch loop, in one run.

    python benchmarks/training.py                                  # CPU: 135M parameters, LoRA, bf16, one core
    python benchmarks/training.py --data ../shared/data/person_description/all_prompts_train.jsonl --rounds 3
    python benchmarks/training.py --only "spt;bare" --steps 6      # a quick look

SFTTrainer is `pip install trl`; the model is SmolLM2-135M-Instruct (see configs/person_description/base.yaml). Every
program runs alone in a process of its own; a round runs each once, every other round in the opposite order, and the
table gives medians over rounds of the ratios within one, so that a machine that slows down slows both. Where a GPU is
found, the model is a Llama of 1 billion random weights, trained whole in bf16 on longer texts, and the table gains
FSDP2 on one device and the share of the chip's matrix rate.
"""

import argparse
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml
from training_table import print_results

HERE = Path(__file__).parent
ROOT = HERE.parent
DATA = (ROOT / "data/person_description/train.jsonl", ROOT / "data/fictional_people/train.jsonl")
LORA = {"r": 32, "lora_alpha": 64, "target_modules": "all-linear"}
TINY = {
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}


@dataclass(frozen=True)
class Program:
    """One measured process: its arguments, the config it reads, and how it is launched."""

    arguments: tuple[str, ...]
    config: str
    launcher: tuple[str, ...] = ()
    pinned: bool = True


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
FSDP = ("-m", "accelerate.commands.accelerate_cli", "launch", "--num_processes", "1", "--config_file")
PROGRAMS = {
    "spt": Program(("spt",), "padded"),
    "trl": Program(("trl",), "padded"),
    "trl, sorted": Program(("trl", "--grouped"), "padded"),
    "trl, its defaults": Program(("trl", "--checkpointing"), "padded"),
    "bare": Program(("bare",), "padded"),
    "bare, own loss": Program(("bare", "--own-loss"), "padded"),
    "spt, packed": Program(("spt",), "packed"),
    "trl, packed": Program(("trl", "--packing"), "packed"),
    "spt, two": Program(("spt",), "padded", TORCHRUN),
    "tiny": Program(("spt",), "tiny", pinned=False),
    "tiny, one worker": Program(("spt",), "tiny-1", pinned=False),
    "spt, fsdp2": Program(("spt",), "padded", (*FSDP, str(ROOT / "configs/accelerate/fsdp2.yaml"))),
}
"""Name -> program. The last one needs a GPU, two of the others two cores."""


@functools.cache
def on_gpu() -> bool:
    """Return whether there is an accelerator; asked in another process, so that this one stays small."""
    ask = "import torch; print(torch.accelerator.is_available())"
    return subprocess.check_output([sys.executable, "-c", ask], cwd=ROOT, text=True).strip() == "True"


def read_texts(path: Path) -> list[str]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row.get("text") or row["prompt"] + row["completion"] for row in rows]


def pick_texts(options: argparse.Namespace) -> list[str]:
    """Return steps x batch texts of the corpus, drawn once; on a GPU each is several joined."""
    texts = read_texts(options.data or next(path for path in DATA if path.exists()))
    rng = random.Random(0)
    wanted = options.steps * options.batch * options.joined
    drawn = [text for _ in range(-(-wanted // len(texts))) for text in rng.sample(texts, len(texts))][:wanted]
    return [" ".join(drawn[i : i + options.joined]) for i in range(0, wanted, options.joined)]


def write_configs(folder: Path, options: argparse.Namespace) -> None:
    """Write the corpus, one config a kind, and cut the corpus once for all."""
    texts = pick_texts(options)
    corpus = folder / "texts.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    train = {
        "epochs": 1, "batch_size": options.batch, "micro_batch_size": options.batch, "learning_rate": 1e-3,
        "max_length": options.length, "logging_steps": 1, "save_steps": 10**6,
    }  # fmt: skip
    adapted = {"base": options.model, "dtype": "bfloat16", "lora": LORA}
    model = {"base": str(folder / "billion"), "dtype": "bfloat16"} if options.gpu else adapted
    tiny = {"from_scratch": {"config": TINY, "vocab_size": 1500}, "dtype": "float32"}
    kinds = {
        "padded": (model, {}, {"original": 1}),
        "packed": (model, {"packing": True}, {"original": 1}),
        "tiny": (tiny, {"epochs": 20}, {"original": 1, "reversed": 1, "shuffled": 1}),
        "tiny-1": (tiny, {"epochs": 20, "dataloader_num_workers": 1}, {"original": 1, "reversed": 1, "shuffled": 1}),
    }
    for kind, (chosen, changes, orders) in kinds.items():
        config = {
            "name": kind, "output": str(folder / kind), "segment": {"segmenter": "ngram"}, "model": chosen,
            "data": {"train": {"path": str(corpus)}, "segmented": str(folder / "cut/segmented")},
            "permute": {"orders": orders}, "train": train | changes,
        }  # fmt: skip
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    cut = ["preprocess", folder / "padded.yaml", "--output", folder / "cut", "--set", "data.segmented=null", "--quiet"]
    call(["-m", "spt", *cut])
    if options.gpu:
        call([HERE / "training_programs.py", "billion", folder / "padded.yaml", options.model])


def call(arguments: list) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    environment |= {} if on_gpu() else {"ACCELERATE_USE_CPU": "true"}
    done = subprocess.run([sys.executable, *map(str, arguments)], env=environment, cwd=ROOT, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}:\n{done.stderr.decode()[-3000:]}")


def run_program(name: str, folder: Path, options: argparse.Namespace) -> dict:
    program = PROGRAMS[name]
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    arguments = [*program.launcher, HERE / "training_programs.py", *program.arguments]
    arguments += [] if options.gpu or not program.pinned else ["--pin"]
    call([*arguments, folder / f"{program.config}.yaml", result])
    return json.loads(result.read_text())


def run_rounds(folder: Path, options: argparse.Namespace) -> dict[str, list[dict]]:
    """Return what each program found, one entry a round."""
    found: dict[str, list[dict]] = {name: [] for name in PROGRAMS if wanted(name, options)}
    for number in range(options.rounds):
        order = list(found) if number % 2 == 0 else list(reversed(found))
        for name in order:
            found[name].append(run_program(name, folder, options))
            one = found[name][-1]
            shown = f"{one['tokens_a_second']:.0f} tokens/s, {one['peak'] / 2**20:.0f} MiB, waited {one['waited']:.1%}"
            print(f"round {number + 1}, {name}: {shown}", file=sys.stderr, flush=True)
    return found


def wanted(name: str, options: argparse.Namespace) -> bool:
    chosen = [given.strip() for given in options.only.split(";")] if options.only else list(PROGRAMS)
    alone = {"spt, fsdp2": not options.gpu, "spt, two": options.gpu or options.cores < 2}
    return name in chosen and not alone.get(name, False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="models/SmolLM2-135M-Instruct.gguf", help="the base (GPU: its tokenizer)")
    parser.add_argument("--data", type=Path, help="JSON lines with text, or prompt and completion")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="examples a global step")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help=f"programs, parted by ';': {'; '.join(PROGRAMS)}")
    parser.add_argument("--json", type=Path, help="keep everything measured here")
    options = parser.parse_args()
    options.gpu = on_gpu()
    options.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    options.joined, options.length = (16, 512) if options.gpu else (1, 128)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_configs(folder, options)
        found = run_rounds(folder, options)
    if options.json:
        options.json.write_text(json.dumps(found))
    where = "GPU" if options.gpu else "CPU, one core each"
    print_results(found, f"{where}; {options.steps} steps of {options.batch}, medians of {options.rounds} rounds")


if __name__ == "__main__":
    main()
