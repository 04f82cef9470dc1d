"""Attention for what is trained here: many short examples, packed into one row or padded on the right.

In: queries, keys and values, for a packed row with the lengths of its examples. Out: each example's attention to itself
alone. A row is laid out as [examples, longest] inside the attention only, and torch's own kernel runs on that without a
mask. Trade-off: this copies queries, keys and values once a layer; the kernels of flash attention, which read the same
lengths, need not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from spt.errors import ModelError
from spt.model.check import answering, noise
from spt.model.head import base_of
from spt.model.mirror import attend_mirrored
from spt.model.source import first_line

NAME = "spt"
"""Our attention's name in transformers' table of implementations."""

_SHORT = 256
"""On a CPU, rows up to this long are attended to in float32: bfloat16 took 2 to 9 times as long (128 to 16 tokens)."""

_ROUNDING = 5
"""A row of another length may be rounded otherwise, by so many times what equal rows are; a leak is far larger."""


def attend(
    module: Any,
    query: Float[Tensor, "batch heads tokens size"],
    key: Float[Tensor, "batch key_heads keys size"],
    value: Float[Tensor, "batch key_heads keys size"],
    attention_mask: Tensor | None,
    *,
    cu_seq_lens_q: Int[Tensor, " bounds"] | None = None,
    max_length_q: int | None = None,
    mirrored: tuple[Tensor, Tensor] | None = None,
    **options: Any,
) -> tuple[Float[Tensor, "batch tokens heads size"], None]:
    """Return what each query attends to, and no weights. Without lengths, this is transformers' `sdpa`.

    With `mirrored` it is full attention at mirrored positions (`spt.model.mirror`).
    Raises ModelError for an attention that torch's kernel has not (soft caps, sinks).
    """
    if mirrored is not None and attention_mask is not None:
        scaling, dropout = options["scaling"], options["dropout"]
        parts = query, key, value, attention_mask
        return attend_mirrored(module, *parts, mirrored, scaling=scaling, dropout=dropout), None
    if cu_seq_lens_q is None or max_length_q is None:
        return _sdpa(module, query, key, value, attention_mask, **options), None
    bounds, tokens = cu_seq_lens_q.long(), query.shape[2]
    starts = bounds[:-1]
    # A short example is filled up with what follows it: a causal model never sees that.
    taken = (starts[:, None] + torch.arange(max_length_q, device=query.device)).clamp(max=tokens - 1)
    query, key, value = (_lay_out(part, taken) for part in (query, key, value))
    output = _sdpa(module, query, key, value, None, **options)
    example = torch.repeat_interleave(torch.arange(len(starts), device=query.device), bounds.diff(), output_size=tokens)
    place = torch.arange(tokens, device=query.device) - starts[example]
    return output.flatten(0, 1).index_select(0, example * max_length_q + place)[None], None


def _lay_out(part: Tensor, taken: Tensor) -> Tensor:
    """[1, heads, tokens, size] and places [examples, longest] -> [examples, heads, longest, size]."""
    rows = part[0].transpose(0, 1).index_select(0, taken.flatten())
    return rows.view(*taken.shape, *rows.shape[1:]).transpose(1, 2)


def _sdpa(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **options: Any,
) -> Tensor:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if softcap is not None or s_aux is not None:  # torch's kernel has neither, and older transformers leave them out
        raise ModelError(
            f"the {module.config.model_type} model caps its attention or has sinks in it, which sdpa has not; use "
            "model.attn_implementation: eager, or for train.packing flash_attention_2"
        )
    tokens, dtype = query.shape[2], query.dtype
    if mask is None and sliding_window is not None and sliding_window < tokens:
        place = torch.arange(tokens, device=query.device)
        back = place[:, None] - place
        mask = ((back >= 0) & (back < sliding_window))[None, None]
    if dtype != torch.bfloat16 or query.device.type != "cpu" or tokens > _SHORT:
        return sdpa_attention_forward(module, query, key, value, mask, **options)[0]  # type: ignore[no-any-return]  # untyped
    mask = mask.float() if mask is not None and mask.is_floating_point() else mask
    with torch.autocast("cpu", enabled=False):  # it would cast them back
        wide = query.float(), key.float(), value.float()
        output: Tensor = sdpa_attention_forward(module, *wide, mask, **options)[0]
    return output.to(dtype)


def _mask(*shape: Any, **options: Any) -> Tensor | None:
    """Return transformers' mask, or None where only positions ask for one: `attend` has the lengths, and the window."""
    from transformers.masking_utils import sdpa_mask

    whole = options.get("attention_mask") is None and not options.get("use_vmap", False)
    # One query is a step of generation, which sees all that is cached.
    if whole and not options.get("allow_is_causal_skip", True) and options.get("q_length") != 1:
        return None
    mask: Tensor | None = sdpa_mask(*shape, **options)
    return mask


def fit_attention(model: Any, *, packing: bool) -> None:
    """Put our attention where a model uses `sdpa`; check that it can be packed where that is asked.

    Raises ModelError for an architecture whose packed examples would not be learned as each would be alone.
    """
    _register()
    base = base_of(model)
    # What supports flash attention hands lengths and windows to its attention: the same that ours reads.
    if base.config._attn_implementation == "sdpa" and base._supports_flash_attn and base._can_set_attn_implementation():
        base.set_attn_implementation(NAME)
    if packing:
        _check_packing(model)


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, _mask)


def _check_packing(model: Any) -> None:
    kind, used = model.config.model_type, base_of(model).config._attn_implementation
    if used != NAME and not used.startswith("flash_attention"):
        raise ModelError(
            f"train.packing: the {kind} model attends by {used!r}, which cannot keep packed examples apart; use "
            "model.attn_implementation: sdpa (where the architecture has it) or flash_attention_2, or packing: false"
        )
    try:
        with on_any_device(model), answering(model):
            difference = _packed_difference(model)
    except (TypeError, ValueError, RuntimeError, KeyError, IndexError) as error:
        raise ModelError(
            f"train.packing: the {kind} model cannot be packed ({first_line(error)}); use packing: false"
        ) from error
    if difference > _ROUNDING * noise(model):
        raise ModelError(
            f"train.packing: the {kind} model does not keep packed examples apart (logits differ by {difference:.1e} "
            "of their size); use packing: false"
        )


@torch.inference_mode()
def _packed_difference(model: Any) -> float:
    """Return by how much logits in a packed row differ from those alone, or with another neighbour, as a share."""
    device = next(model.parameters()).device
    first, other, last = [1, 2, 3], [4, 3, 5], [5, 6, 7, 8, 9]
    alone = model(input_ids=torch.tensor([last], device=device), use_cache=False).logits.float()
    bounds = torch.tensor([0, len(first), len(first) + len(last)], dtype=torch.int32, device=device)
    layout = {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds, "max_length_q": 5, "max_length_k": 5}
    positions = torch.tensor([[*range(len(first)), *range(len(last))]], device=device)
    difference = 0.0
    for neighbour in (first, other):
        ids = torch.tensor([[*neighbour, *last]], device=device)
        packed = model(input_ids=ids, position_ids=positions, use_cache=False, **layout).logits.float()
        found = packed[:, len(first) :]
        difference = max(difference, float((found - alone).abs().max() / alone.abs().max()))
    return difference


@contextmanager
def on_any_device(model: Any) -> Iterator[None]:
    """Let a model run where it lies: flash kernels need a device, so on a CPU our attention stands in for them."""
    base = base_of(model)
    used = base.config._attn_implementation
    stand_in = used.startswith("flash_attention") and next(model.parameters()).device.type == "cpu"
    if stand_in:
        _register()
        base.set_attn_implementation(NAME)
    try:
        yield
    finally:
        if stand_in:
            base.set_attn_implementation(used)
