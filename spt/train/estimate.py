"""`--dry-run`: what a training will take, before anything is loaded: memory a device, and time.

    weights + their copies in the dtype of computation + gradients + AdamW's two states + activations + logits

In: the model's sketch, a preview of its stream, a machine that need not be there. Out: bytes for each way to spread a
model over devices, seconds. Trade-off: the parts are added up as if all stood at once, which leaves room for what lives
shortly; what an allocator loses in holes and a runtime keeps for itself is not in the sum (see docs/scaling.md).
"""

import json
from dataclasses import dataclass
from typing import Any

import torch

from spt.config import Config
from spt.model import check_positions
from spt.model.head import backbone_of, head_of, rows_at_once
from spt.train.flops import FROZEN, TRAINED, flops_per_token, weights_in
from spt.train.footprint import copied_bytes, saved_bytes, sketch_model
from spt.train.machine import Machine, find_machine
from spt.train.preview import Preview, preview
from spt.train.setup import train_folder

UTILISATION = 0.4
"""Share of a chip's matrix rate that a fine-tuning reaches; assumed where nothing was measured."""
FLOAT32 = 4
STATES = 2 * FLOAT32
"""AdamW's bytes a trained parameter: two moments in float32."""
PACKED = 4.127 / 8
"""Bytes a weight in 4 bits, with its share of scales that are quantized themselves (2305.14314, section 3)."""


@dataclass(frozen=True)
class Memory:
    """Bytes on one device; the weights with their copies."""

    strategy: str
    weights: float
    gradients: float
    optimizer: float
    activations: float | None
    logits: float

    @property
    def total(self) -> float:
        """Return the sum of all parts that are known."""
        return self.weights + self.gradients + self.optimizer + (self.activations or 0.0) + self.logits


@dataclass(frozen=True)
class Estimate:
    """What a training will take. `seconds` are reckoned (None: the device's rate is unknown), `rate` is measured."""

    parameters: int
    trained: int
    seen: Preview
    machine: Machine
    memory: list[Memory]
    seconds: float | None
    rate: float | None


def estimate(config: Config, on: str | None) -> Estimate:
    """Return the estimate of a training on the machine that `on` names (None: the one at hand).

    Raises what reading its data, its tokenizer and its model's config raises.
    """
    machine = find_machine(on, config.model.dtype)
    seen = preview(config, machine.devices)
    model = sketch_model(config.model, seen.tokenizer, seen.tag)
    check_positions(model, config.train.max_length, "train.max_length")
    counts = [(weights_in(parameter), parameter.requires_grad) for parameter in model.parameters()]
    seconds = _seconds(config, model, seen, machine)
    return Estimate(
        parameters=sum(count for count, _ in counts),
        trained=sum(count for count, learned in counts if learned),
        seen=seen,
        machine=machine,
        memory=_memory(config, model, seen, machine),
        seconds=seconds,
        rate=measured_rate(config) if on is None else None,
    )


def _memory(config: Config, model: Any, seen: Preview, machine: Machine) -> list[Memory]:
    """Return the memory of one device, one row for each way to spread the model; the model's sketch is used up.

    Full copies: each device holds all (DDP where there are several). Sharded (FSDP2, ZeRO-3): each holds its share of
    weights, gradients and states, and two layers and the head gathered at a time.
    """
    n, computed = machine.devices, getattr(torch, config.model.dtype)
    held, head = _held(config, model), head_of(model).weight.numel() * computed.itemsize
    copies = copied_bytes(model, computed)
    layer = (sum(p.numel() for p in backbone_of(model).parameters()) - _embedded(model)) / _layers(model)
    trained = sum(weights_in(parameter) for parameter in model.parameters() if parameter.requires_grad)
    gradients, states = FLOAT32 * trained, STATES * trained
    passing = (_activations(config, model, seen, machine), _logits(model, seen, machine, computed))
    if n == 1:
        return [Memory("one device", held + copies, gradients, states, *passing)]
    gathered = 2 * layer * computed.itemsize + head
    return [
        # DDP sums gradients where they lie (`spt.train.ranks`).
        Memory(f"DDP on {n}", held + copies, gradients, states, *passing),
        Memory(f"FSDP2 or ZeRO-3 on {n}", held / n + gathered, gradients / n, states / n, *passing),
    ]


def _held(config: Config, model: Any) -> float:
    """Return the bytes of the weights; of a 4-bit base the frozen matrices under the head take 4 bits and scales."""
    held = float(sum(parameter.nbytes for parameter in model.parameters()))
    if config.model.load_in_4bit:
        frozen = [p for p in backbone_of(model).parameters() if p.ndim > 1 and not p.requires_grad]
        packed = sum(p.numel() for p in frozen) - _embedded(model)
        held -= packed * (getattr(torch, config.model.dtype).itemsize - PACKED)
    return held


def _embedded(model: Any) -> int:
    """Return the weights of the input embedding."""
    return int(model.get_input_embeddings().weight.numel())


def _layers(model: Any) -> int:
    return int(model.config.get_text_config().num_hidden_layers)


def _activations(config: Config, model: Any, seen: Preview, machine: Machine) -> float | None:
    rows, width = seen.largest.input_ids.shape
    saved = saved_bytes(model, config.model.dtype, seen.largest, on_cpu=machine.kind == "cpu")
    if saved is None or not config.train.gradient_checkpointing:
        return saved
    # Kept: what enters each layer; computed again: one layer at a time.
    embedding = model.get_input_embeddings().weight
    entering = rows * width * embedding.shape[1] * embedding.itemsize
    return float(_layers(model) * entering + saved / _layers(model))


def _logits(model: Any, seen: Preview, machine: Machine, computed: torch.dtype) -> float:
    vocabulary = head_of(model).weight.shape[0]
    tokens = min(seen.largest.size, rows_at_once(model, machine.kind))
    # Logits and their gradient as computed, and both in float32.
    return float(tokens * vocabulary * 2 * (computed.itemsize + FLOAT32))


def _seconds(config: Config, model: Any, seen: Preview, machine: Machine) -> float | None:
    """Return the time of the whole training at the assumed utilisation, None where the device's rate is unknown."""
    if machine.peak is None:
        return None
    flops = flops_per_token(model, seen.tokens / seen.examples)
    if config.train.gradient_checkpointing:  # a second forward pass: 2 FLOP a weight
        flops *= 1 + 2 / (TRAINED if config.model.lora is None else FROZEN)
    return seen.tokens * flops / (machine.devices * machine.peak * UTILISATION)


def measured_rate(config: Config) -> float | None:
    """Return the tokens a second that this training logged last, None where it has not run."""
    log = train_folder(config) / "metrics.jsonl"
    if not log.exists():
        return None
    whole = (line for line in log.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n"))
    rows = map(json.loads, whole)
    rates = [row["throughput"]["tokens_per_second"] for row in rows if "throughput" in row]
    return float(rates[-1]) if rates else None
