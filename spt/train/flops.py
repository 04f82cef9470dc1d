"""What a training step must compute, and what a chip can: the two halves of model FLOP utilisation (MFU).

In: a model (the meta device is enough), or an accelerator's name. Out: FLOP a token, FLOP a second. Trade-off: matrix
products alone are counted, and none twice (recomputing activations is no useful work), so that MFU compares with what
others publish; norms, softmax and the optimizer are left out.
"""

import re
from typing import Any, NamedTuple

import torch

TRAINED, FROZEN = 6.0, 4.0
"""FLOP a token and weight: forward 2, gradient of the input 2, and of the weight 2 where it is trained."""


class Chip(NamedTuple):
    """One kind of accelerator: all words of the name stand in what its driver calls it. Memory in GB of 10^9 bytes."""

    name: str
    memory: float
    bfloat16: float | None
    float16: float
    float32: float


# Dense matrix rates in 10^12 FLOP/s, summed up in float32, without sparsity, from the vendors' data sheets (NVIDIA: one
# data sheet a product, for GeForce the architecture white papers; AMD: Instinct data sheets; an MI250X is two devices).
# float32 is the rate without TF32, torch's default. The more special name stands first.
CHIPS = (
    Chip("b200", 180, 2250, 2250, 75),
    Chip("h200 nvl", 141, 835, 835, 60),
    Chip("h200", 141, 989, 989, 67),
    Chip("gh200", 96, 989, 989, 67),
    Chip("h100 pcie", 80, 756, 756, 51),
    Chip("h100 nvl", 94, 835, 835, 60),
    Chip("h100", 80, 989, 989, 67),
    Chip("a100 40gb", 40, 312, 312, 19.5),
    Chip("a100", 80, 312, 312, 19.5),
    Chip("a10g", 24, 70, 70, 35),
    Chip("a10", 24, 125, 125, 31.2),
    Chip("a40", 48, 150, 150, 37.4),
    Chip("a6000", 48, 155, 155, 38.7),
    Chip("l40s", 48, 362, 362, 91.6),
    Chip("l40", 48, 181, 181, 90.5),
    Chip("l4", 24, 121, 121, 30.3),
    Chip("5090", 32, 209.5, 209.5, 104.8),
    Chip("4090", 24, 165, 165, 82.6),
    Chip("3090", 24, 71, 71, 35.6),
    Chip("v100", 32, None, 125, 15.7),
    Chip("t4", 16, None, 65, 8.1),
    Chip("mi325x", 256, 1307, 1307, 163.4),
    Chip("mi300x", 192, 1307, 1307, 163.4),
    Chip("mi250x", 64, 191.5, 191.5, 47.9),
)


def flops_per_token(model: Any, length: float = 0) -> float:
    """Return the FLOP of one token, forward and backward.

    6 for each trained weight and 4 for each frozen one, through which gradients still flow (a LoRA base); the head
    included, embedding look-ups not; of experts only the share a token visits. Attention between tokens is left out
    unless `length` gives the tokens of an example: then 6 x layers x heads x head size x length more, half of the full
    square, since a token sees only those before it. Source: Kaplan et al. 2001.08361 (2.1), Chowdhery et al.
    2204.02311 (appendix B).
    """
    head = model.get_output_embeddings()
    of_head = set() if head is None else {id(parameter) for parameter in head.parameters()}
    tables = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)} - of_head
    visited = _visited_share(model.config)
    total = 0.0
    for name, parameter in model.named_parameters():
        shape = getattr(parameter, "ds_shape", parameter.shape)  # DeepSpeed leaves a parameter empty
        if id(parameter) not in tables and len(shape) > 1:
            share = visited if ".experts." in name else 1.0
            total += share * weights_in(parameter) * (TRAINED if parameter.requires_grad else FROZEN)
    return total + _attention(model.config, length)


def weights_in(parameter: Any) -> int:
    """Return how many weights a parameter stands for: the whole of one that is sharded, or packed in 4 bits."""
    packed = getattr(parameter, "quant_state", None)
    if packed is not None:
        return int(torch.Size(packed.shape).numel())
    return int(getattr(parameter, "ds_numel", parameter.numel()))


def _visited_share(config: Any) -> float:
    counts = (getattr(config, key, 0) for key in ("num_local_experts", "num_experts", "n_routed_experts"))
    experts = next((count for count in counts if count), 0)
    return float(getattr(config, "num_experts_per_tok", experts)) / experts if experts else 1.0


def _attention(config: Any, length: float) -> float:
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    return float(6 * config.num_hidden_layers * heads * size * length)


def find_chip(name: str) -> Chip | None:
    """Return the accelerator of that name (`h100`, or what the driver says), None where it is unknown."""
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    if "mig" in words:
        return None  # a slice of a chip: its rate is not the chip's
    return next((chip for chip in CHIPS if words.issuperset(chip.name.split())), None)


def peak_flops(device: torch.device | str, dtype: torch.dtype | str) -> float | None:
    """Return the dense matrix rate of a device in FLOP/s, None where it is unknown (any CPU).

    `device` is a torch device, whose name the driver gives, or a name of the table.
    """
    if isinstance(device, torch.device):
        if device.type != "cuda":
            return None
        device = torch.cuda.get_device_name(device)
    chip = find_chip(device)
    rate = getattr(chip, str(dtype).removeprefix("torch."), None) if chip else None
    return None if rate is None else rate * 1e12
