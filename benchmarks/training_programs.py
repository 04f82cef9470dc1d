"""What benchmarks/training.py measures, one program a process; it writes what it found as JSON.

    spt    the command `spt train`, in this process, with a real config
    trl    TRL's SFTTrainer on the same records
    bare   a plain PyTorch loop over the batches that spt would take, made beforehand

Each counts from the end of the first step to the end of the last, by a hook on torch's optimizers that is the same for
all, and its own tokens without padding. Trade-off: the first step, which warms up, counts for nobody.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
from torch.nn import functional
from torch.optim.optimizer import register_optimizer_step_post_hook

BILLION = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 4096,
}


@dataclass
class Clock:
    """When each step ended, on the clock and in CPU time, its tokens, and the seconds waited for its batch."""

    ends: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    own_peak: int = 0
    started: int = 0

    def tick(self, *_: Any) -> None:
        """Note that a step ended; what an optimizer's hook calls."""
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
        self.ends.append(time.perf_counter())
        self.busy.append(time.process_time())
        # Here, since what comes after the last step is saving.
        self.own_peak, self.started = own_peak(), max(self.started, started_memory())

    def result(self) -> dict[str, Any]:
        """Return the rates from the end of the first step on."""
        seconds = self.ends[-1] - self.ends[0]
        return {
            "steps": len(self.ends),
            "seconds_a_step": seconds / (len(self.ends) - 1),
            "cpu_a_step": (self.busy[-1] - self.busy[0]) / (len(self.ends) - 1),
            "tokens_a_second": sum(self.tokens[1 : len(self.ends)]) / seconds,
            "waited": sum(self.waits[1 : len(self.ends)]) / seconds,
            "peak": self.own_peak + self.started,
            "own_peak": self.own_peak,
        }


def own_peak() -> int:
    """Return the most bytes this process held so far: on a device, or in memory."""
    if torch.accelerator.is_available():
        return torch.accelerator.max_memory_allocated()
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def started_memory() -> int:
    """Return the bytes that the processes started by this one hold now, shared pages in proportion."""
    if torch.accelerator.is_available():
        return 0
    found = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += process.memory_full_info().pss
    return found


def run_spt(config: Path, clock: Clock) -> dict[str, Any]:
    """Run `spt train`, watching its stream of batches from outside."""
    from spt import cli
    from spt.train.loop import Stream

    original = Stream.steps

    def watched(self: Any, done: int) -> Iterator[Any]:
        steps = original(self, done)
        while True:
            started = time.perf_counter()
            step = next(steps, None)
            if step is None:
                return
            clock.waits.append(time.perf_counter() - started)
            clock.tokens.append(sum(batch.tokens for batch in step.batches))
            yield step

    Stream.steps = watched  # type: ignore[method-assign]  # watched from outside, so that the program is unchanged
    sys.argv = ["spt", "train", str(config), "--quiet", "--force"]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise
    found = clock.result()
    return {**found, "losses": read_losses(config), "mfu": utilisation(config, found["tokens_a_second"])}


def utilisation(path: Path, tokens_a_second: float) -> float | None:
    """Return the share of the device's matrix rate that a config's model reached, None where that is unknown."""
    from spt.config import read_config
    from spt.train.flops import flops_per_token, peak_flops
    from spt.train.footprint import sketch_model

    settings = read_config(path).model
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    peak = peak_flops(device, settings.dtype)
    return peak and tokens_a_second * flops_per_token(sketch_model(settings, None, None)) / peak


def write_billion(config: Path, tokenizer_of: Path) -> None:
    """Write the GPU's model, a Llama of random weights, with the tokenizer of another."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from spt.config import read_config
    from spt.model import resolve_base

    tokenizer = AutoTokenizer.from_pretrained(resolve_base(str(tokenizer_of)))
    folder = read_config(config).model.base
    torch.manual_seed(0)
    shape = AutoConfig.for_model(**BILLION, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    AutoModelForCausalLM.from_config(shape, dtype=torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def read_losses(config: Path) -> list[float]:
    from spt.config import read_config

    log = Path(read_config(config).output) / "train" / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


def run_bare(config: Path, clock: Clock, *, own_loss: bool) -> dict[str, Any]:
    """Run the loop that anyone would write, on the model and the batches of the same config."""
    from transformers import get_scheduler

    from spt.config import read_config
    from spt.loss import OBJECTIVES
    from spt.train.setup import prepare

    settings = read_config(config, ["train.dataloader_num_workers=0"])
    folder = Path(settings.output) / "train"
    folder.mkdir(parents=True, exist_ok=True)
    stream, prepared = prepare(settings, folder)
    steps = list(stream.steps(0))
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    batches = [(step.batches[0], step.batches[0].inputs(device)) for step in steps]
    model = prepared.model.to(device).train()
    objective = OBJECTIVES[settings.train.objective](model)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=settings.train.learning_rate, weight_decay=0.0, fused=True)
    warmup = round(settings.train.warmup_ratio * len(steps))
    schedule = get_scheduler("cosine", optimizer, num_warmup_steps=warmup, num_training_steps=len(steps))
    in_bfloat16 = settings.model.dtype == "bfloat16"
    losses = []
    for batch, inputs in batches:
        clock.tokens.append(batch.tokens)
        with torch.autocast(device.type, torch.bfloat16) if in_bfloat16 else nullcontext():
            nats = objective(**inputs) if own_loss else plain_loss(model, **inputs)
        (nats / batch.target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(learned, settings.train.max_grad_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(nats.item() / batch.target_tokens)
    return {**clock.result(), "losses": losses}


def plain_loss(model: Any, input_ids: torch.Tensor, labels: torch.Tensor, **_: Any) -> torch.Tensor:
    logits = model(input_ids=input_ids, use_cache=False).logits[:, :-1].float()
    return functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=("spt", "bare", "trl", "billion"))
    parser.add_argument("config", type=Path)
    parser.add_argument("result", type=Path, help="billion: the model whose tokenizer is taken")
    parser.add_argument("--pin", action="store_true", help="use one core, and let workers share it")
    parser.add_argument("--own-loss", action="store_true", help="bare: the objective of spt instead of a plain one")
    parser.add_argument("--packing", action="store_true", help="trl")
    parser.add_argument("--grouped", action="store_true", help="trl: group_by_length")
    parser.add_argument("--checkpointing", action="store_true", help="trl: gradient checkpointing, its default")
    options = parser.parse_args()
    if options.program == "billion":
        write_billion(options.config, options.result)
        return
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    if options.pin:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    clock = Clock()
    register_optimizer_step_post_hook(clock.tick)
    found = run(options, clock)
    if rank == 0:
        options.result.write_text(json.dumps(found))


def run(options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    if options.program == "spt":
        return run_spt(options.config, clock)
    if options.program == "bare":
        return run_bare(options.config, clock, own_loss=options.own_loss)
    from training_trl import run_trl

    return run_trl(options.config, clock, options)


if __name__ == "__main__":
    main()
