"""One measured program of benchmarks/evaluation.py: a job file in, its answers, seconds and memory as JSON out.

    python benchmarks/evaluation_programs.py spt|harness JOB

A job holds model, dtype, batch, threads, `warm` (a few of the same kind, not timed) and one of `pairs`
(prompt, continuation), `groups` (prompt, candidates), `prompts` (with `tokens`), or `stream` (a number of questions).
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import torch


def harness(job: dict):
    """Return a function from requests to answers, through lm-evaluation-harness's `hf` model."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=job["model"], dtype=job["dtype"], batch_size=job["batch"], device=job["device"])

    def likelihoods(pairs: list) -> list[float]:
        spaced = [(prompt, text if prompt[-1].isspace() else f" {text}") for prompt, text in pairs]
        asked = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(spaced)]
        return [nats for nats, _ in model.loglikelihood(asked, disable_tqdm=True)]

    def groups(asked: list) -> list[float]:
        return likelihoods([(prompt, text) for prompt, texts in asked for text in texts])

    def answers(prompts: list) -> list[str]:
        options = {"until": ["\n"], "max_gen_toks": job["tokens"], "do_sample": False}
        asked = [Instance("generate_until", {}, (prompt, dict(options)), n) for n, prompt in enumerate(prompts)]
        return [text.split("\n")[0].strip() for text in model.generate_until(asked, disable_tqdm=True)]

    return {"pairs": likelihoods, "groups": groups, "prompts": answers}


def spt(job: dict):
    """Return the same through spt."""
    from spt.config import Evaluate
    from spt.model import load_trained
    from spt.score import LocalAsked
    from spt.score.likelihood import log_probabilities

    model, tokenizer = load_trained(job["model"], dtype=job["dtype"])
    asked = LocalAsked(model.to(job["device"]), tokenizer, Evaluate(batch_size=job["batch"]))
    return {
        "pairs": lambda pairs: [nats for nats, _ in log_probabilities(model, tokenizer, pairs, job["batch"])],
        "groups": lambda groups: [nats for group in asked.log_probabilities(groups) for nats, _ in group],
        "prompts": lambda prompts: asked.generate(prompts, max_new_tokens=job["tokens"]),
    }


class Instant:
    """A model that costs nothing, to see what the rest costs."""

    has_log_probabilities = True

    def generate(self, prompts, *, max_new_tokens, sample_seed=None):
        """Return the same answer to every prompt."""
        return ["an answer of a few words" for _ in prompts]

    def log_probabilities(self, groups):
        """Return the same log-probability and length for every candidate."""
        return [[(-1.5, 3)] * len(texts) for _, texts in groups]


def stream(count: int) -> dict:
    """Return by how much memory grew while `count` questions were read, scored, written, summarised and guarded."""
    from spt.benchmark import read_questions
    from spt.config import Evaluate
    from spt.score.guards import echo
    from spt.score.questions import score_chunks
    from spt.score.stream import ScoreFile
    from spt.statistics import summarise

    settings = Evaluate(metrics=("exact", "startswith", "logprob"))
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        with path.open("w", encoding="utf-8") as lines:
            for n in range(count):
                row = {"id": f"q{n}", "fact_id": f"f{n // 2}", "direction": ("forward", "reversed")[n % 2]}
                row |= {"prompt": f"Who is number {n}?", "targets": [f"the {n}th of all"]}
                lines.write(json.dumps(row) + "\n")
        questions = read_questions(path).questions
        file = ScoreFile(Path(folder) / "scores.jsonl", settings.metrics)
        for scores in score_chunks(Instant(), questions, settings):
            file.append(scores)
        written = file.path.stat().st_size
        summarise(file.read(), headline="exact", seed=0)
        echo(file.read(), seed=0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
    return {"grown": grown * 1024 / count, "written": written / count}


def main() -> None:
    kind, place = sys.argv[1:]
    job = json.loads(Path(place).read_text(encoding="utf-8"))
    torch.set_num_threads(job["threads"])
    if "stream" in job:
        print(json.dumps(stream(job["stream"])))
        return
    name = next(name for name in ("pairs", "groups", "prompts") if name in job)
    ask = {"spt": spt, "harness": harness}[kind](job)[name]
    ask(job[name][:2])
    if job["device"] != "cpu":
        torch.accelerator.synchronize()
    wall, cpu = time.perf_counter(), time.process_time()
    answers = ask(job[name])
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "answers": answers}))


if __name__ == "__main__":
    main()
