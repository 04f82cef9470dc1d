"""How fast, how exact and how small evaluation is, against lm-evaluation-harness's `hf` model, in one run.

    python benchmarks/evaluation.py                                   # CPU: 135M parameters, bf16, one core
    python benchmarks/evaluation.py --questions 8 --targets 50 --rounds 1 --stream 2000        # a quick look

The harness is `pip install lm_eval`; where that would change versions pinned here, put it into an environment of its
own and give its interpreter as --harness. The model is SmolLM2-135M-Instruct: configs/person_description/base.yaml.
Every program runs alone in a process of its own; a round runs each once, every other round in the opposite order, and
the table gives medians over rounds of the ratios within one, of wall and of processor time. Exactness is measured in
float32, on the first few questions, and float64 says whose rounding a difference is. Memory a question is what the
larger of two streams takes beyond the smaller: a file of questions, two a fact, is read, asked of a model that costs
nothing, summarised and looked through for echoes. On a GPU the targets are the same.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from transformers import AutoTokenizer

HERE = Path(__file__).parent
ROOT = HERE.parent
QUESTIONS = ROOT / "data/fictional_people/questions.jsonl"
RATIOS = (
    ("one target a question", "one", ("harness", "spt"), ">= 1.5"),
    ("ten candidates a question", "ten", ("harness", "spt"), ">= 4"),
    ("ten candidates after a chat's prompt", "chat", ("harness", "spt"), ">= 4"),
    ("generation", "answers", ("harness", "spt"), ">= 1.5"),
    ("ranking over all targets, against every pair singly", "rank", ("singly", "spt"), ">= 5"),
)


def make_jobs(options: argparse.Namespace) -> dict[str, dict]:
    """Return what each measurement asks, by its name."""
    rng = random.Random(0)
    rows = [json.loads(line) for line in options.data.read_text(encoding="utf-8").splitlines()]
    rng.shuffle(rows)
    chosen = [rows[n % len(rows)] for n in range(options.questions)]
    targets = sorted({row["targets"][0] for row in rows})
    pool = many_targets(rows, options.targets, rng)
    ranked = [row for row in rows if row["direction"] == "reversed"][: options.ranked]
    pairs = [(rng.choice(ranked)["prompt"], rng.choice(pool)) for _ in range(options.pairs)]
    ten = [(row["prompt"], [row["targets"][0], *rng.sample(targets, 9)]) for row in chosen]
    return {
        "one": {"pairs": [(row["prompt"], row["targets"][0]) for row in chosen]},
        "ten": {"groups": ten},
        "chat": {"groups": [(chat, texts) for chat, (_, texts) in zip(in_chat(ten, options), ten, strict=True)]},
        "answers": {"prompts": [row["prompt"] for row in chosen], "tokens": options.tokens},
        "rank": {"groups": [(row["prompt"], pool) for row in ranked]},
        "singly": {"pairs": pairs},
    }


def in_chat(groups: list, options: argparse.Namespace) -> list[str]:
    """Return the prompts as turns of a chat: how an instruct model is asked, with more to read before an answer."""
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    turns = [[{"role": "user", "content": prompt}] for prompt, _ in groups]
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def many_targets(rows: list[dict], count: int, rng: random.Random) -> list[str]:
    """Return `count` names: those that reversed questions ask for, and others made of their parts."""
    names = sorted({row["targets"][0] for row in rows if row["direction"] == "reversed"})
    firsts, lasts = sorted({name.split()[0] for name in names}), sorted({name.split()[-1] for name in names})
    made = [f"{first} {last}" for first in firsts for last in lasts]
    rng.shuffle(made)
    return list(dict.fromkeys([*names, *made]))[:count]


def run(kind: str, job: dict, options: argparse.Namespace, folder: Path) -> dict:
    place = folder / "job.json"
    common = {"model": options.model, "batch": options.batch, "threads": options.threads, "device": options.device}
    place.write_text(json.dumps(common | {"dtype": options.dtype} | job), encoding="utf-8")
    python = options.harness if kind == "harness" else sys.executable
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [python, str(HERE / "evaluation_programs.py"), kind, str(place)],
        env=environment, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{kind}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(options: argparse.Namespace, folder: Path) -> tuple[dict, dict, dict]:
    """Return the timed results by (measurement, program), those in float32, and those of the stream."""
    jobs = make_jobs(options)
    programs = [("one", "spt"), ("one", "harness"), ("ten", "spt"), ("ten", "harness"), ("chat", "spt")]
    programs += [("chat", "harness"), ("answers", "spt"), ("answers", "harness"), ("rank", "spt"), ("singly", "spt")]
    programs = [program for program in programs if not options.only or program[0] in options.only]
    timed: dict = defaultdict(list)
    for number in range(options.rounds):
        for name, kind in programs[:: 1 if number % 2 == 0 else -1]:
            print(f"round {number + 1}: {name}, {kind}", file=sys.stderr)
            timed[name, kind].append(run(kind, jobs[name], options, folder))
    exact = {}
    for name in ("ten", "answers"):
        key = "groups" if name == "ten" else "prompts"
        small = {**jobs[name], key: jobs[name][key][: options.exact], "dtype": "float32"}
        for kind in ("spt", "harness"):
            print(f"float32: {name}, {kind}", file=sys.stderr)
            exact[name, kind] = run(kind, small, options, folder)["answers"]
    first = {"groups": jobs["ten"]["groups"][: options.exact], "dtype": "float32"}
    for batch in (1, 7):
        exact["ten", batch] = run("spt", first | {"batch": batch}, options, folder)["answers"]
    exact["ten", "float64"] = run("spt", first | {"dtype": "float64"}, options, folder)["answers"]
    streamed = {size: run("spt", {"stream": size}, options, folder) for size in (options.stream // 2, options.stream)}
    return timed, exact, streamed


def ratios(timed: dict, name: str, programs: tuple[str, str], options: argparse.Namespace, clock: str) -> list[float]:
    """Return by how much the second program is faster, a round."""
    slow, fast = timed.get((name, programs[0]), []), timed.get((name, programs[1]), [])
    if name == "rank":
        # Every pair singly would take hours: so many of them were drawn.
        times = options.ranked * options.targets / options.pairs
        slow = [{clock: one[clock] * times} for one in timed.get(("singly", "spt"), [])]
    return [one[clock] / other[clock] for one, other in zip(slow, fast, strict=True)]


def print_results(timed: dict, exact: dict, streamed: dict, options: argparse.Namespace) -> None:
    table = Table("measured", "target", "wall", "processor", "rounds (wall)", box=None)
    for label, name, programs, target in RATIOS:
        wall, cpu = (ratios(timed, name, programs, options, clock) for clock in ("wall", "cpu"))
        if wall:
            each = " ".join(f"{value:.2f}" for value in wall)
            table.add_row(label, target, f"{statistics.median(wall):.2f}", f"{statistics.median(cpu):.2f}", each)
        else:
            table.add_row(label, target, "not run")
    ours, theirs = exact["ten", "spt"], exact["ten", "harness"]
    table.add_row("log-probabilities: greatest difference", "<= 1e-4", f"{farthest(ours, theirs):.1e}")
    relative = max(abs(one / other - 1) for one, other in zip(ours, theirs, strict=True))
    table.add_row("  as a share", "", f"{relative:.1e}")
    for program, found in (("spt", ours), ("the harness", theirs)):
        table.add_row(f"  {program} against float64", "", f"{farthest(found, exact['ten', 'float64']):.1e}")
    for batch in (1, 7):
        table.add_row(f"  batches of {batch} against {options.batch}", "<= 1e-4",
                      f"{farthest(ours, exact['ten', batch]):.1e}")  # fmt: skip
    same = [one == other for one, other in zip(exact["answers", "spt"], exact["answers", "harness"], strict=True)]
    table.add_row("answers that are equal in float32", "all", f"{sum(same)} of {len(same)}")
    (half, first), (size, second) = streamed.items()
    grown = (second["grown"] * size - first["grown"] * half) / (size - half)
    table.add_row(f"bytes of memory a question, from {half:,} to {size:,} questions", "flat", f"{grown:.0f}")
    rates = Table("program", "questions a second", box=None)
    for (name, kind), found in timed.items():
        count = {"rank": options.ranked, "singly": options.pairs}.get(name, options.questions)
        rates.add_row(f"{name}, {kind}", f"{count / statistics.median(one['wall'] for one in found):.2f}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(f"{options.model}, {options.dtype}, {options.device}, {options.threads} threads", rates, table)


def farthest(ours: list[float], theirs: list[float]) -> float:
    return max(abs(one - other) for one, other in zip(ours, theirs, strict=True))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "models/SmolLM2-135M-Instruct.gguf.dequantized"))
    parser.add_argument("--harness", default=sys.executable, help="the interpreter that has lm_eval")
    parser.add_argument("--data", type=Path, default=QUESTIONS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--only", nargs="*", default=(), choices=("one", "ten", "chat", "answers", "rank", "singly"))
    for name, default, what in (
        ("rounds", 3, "rounds"), ("questions", 64, "questions of each kind"), ("batch", 64, "rows in a batch"),
        ("tokens", 64, "tokens of an answer at most"), ("ranked", 5, "questions that are ranked"),
        ("targets", 1000, "targets they are ranked over"), ("pairs", 500, "pairs scored singly"),
        ("exact", 8, "questions compared in float32"), ("stream", 100_000, "questions streamed without a model"),
        ("threads", 1, "threads of torch"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default: {default})")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        print_results(*measure(options, Path(folder)), options)


if __name__ == "__main__":
    main()
