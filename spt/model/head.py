"""A causal model as backbone and head, so that logits are computed only where something is learned.

    input_ids ──backbone──▶ hidden states ──head──▶ logits

In: a model, with or without adapters. Out: the two, and whether the head is all that stands between them. Trade-off:
an architecture that changes its logits after the head (soft caps, scales) is told by a probe, and computes all of them.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from spt.errors import ModelError
from spt.model.adapter import adapted_layers, inputs_as_they_come
from spt.model.check import answering, noise
from spt.model.source import first_line

_CHUNK = {"cpu": 6 << 20}
"""Logits a chunk. In float32 24 MiB on a CPU: above 32, malloc maps pages anew each time, at half the speed."""
_LARGE_CHUNK = 1 << 27

_LARGE = 100.0
"""The probe's logits are this large, so that a soft cap shows."""


def base_of(model: Any) -> Any:
    """Return transformers' model inside peft's, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def backbone_of(model: Any) -> Any:
    """Return what computes the hidden states."""
    return base_of(model).get_decoder()


def head_of(model: Any) -> Any:
    """Return the module that makes logits of hidden states, or None."""
    return base_of(model).get_output_embeddings()


def rows_at_once(model: Any, device: str) -> int:
    """Return how many rows of a model's logits are made at a time on a kind of device."""
    vocabulary: int = base_of(model).config.get_text_config().vocab_size
    return max(1, _CHUNK.get(device, _LARGE_CHUNK) // vocabulary)


def recompute_activations(model: Any, *, compiled: bool = False) -> None:
    """Make a model compute its layers again in the backward pass rather than keep them: gradient checkpointing.

    Raises ModelError for an architecture that cannot.
    """
    base = base_of(model)
    kwargs: dict[str, Any] = {"use_reentrant": False}
    layers = adapted_layers(model)
    if layers and not compiled:  # a compiler records both passes at once

        def contexts() -> tuple[Any, Any]:
            # The objective's own has been left by then, and dropout would meet another dtype than in the forward pass.
            return nullcontext(), inputs_as_they_come(layers, next(model.parameters()).device.type)

        kwargs["context_fn"] = contexts
    try:
        if hasattr(base, "activation_checkpointing_enable"):
            base.activation_checkpointing_enable(activation_checkpointing_kwargs=kwargs)
        else:  # its older name
            base.gradient_checkpointing_enable(gradient_checkpointing_kwargs=kwargs)
    except ValueError as error:
        raise ModelError(f"train.gradient_checkpointing: {first_line(error)}; set it to false") from error


def trained_rows(head: Any) -> list[tuple[list[int], Tensor]]:
    """Return (token ids, rows) that peft trains in the place of rows of a frozen head."""
    tokens = getattr(head, "token_adapter", None)
    if tokens is None or tokens.disable_adapters or tokens.merged:
        return []
    return [(tokens.token_indices[name], tokens.trainable_tokens_delta[name]) for name in tokens.active_adapters]


def apply_head(head: nn.Module, hidden: Tensor) -> Tensor:
    """Return the logits of hidden states.

    Of rows that peft trains only their own columns are computed anew: it would copy the whole head, and make a gradient
    for all of it, each time.
    """
    rows = trained_rows(head)
    if not rows:
        return head(hidden)  # type: ignore[no-any-return]  # what a module returns has any type
    logits: Tensor = head.token_adapter.base_layer(hidden)  # type: ignore[union-attr, operator]  # peft's, untyped
    for token_ids, weight in rows:
        columns = nn.functional.linear(hidden, weight.to(hidden.dtype)).to(logits.dtype)
        logits = logits.index_copy(-1, torch.tensor(token_ids, device=logits.device), columns)
    return logits


@torch.no_grad()
def is_all_head(model: Any) -> bool:
    """Return whether the model's logits are its head's, tried on large random hidden states."""
    backbone, head = backbone_of(model), head_of(model)
    if head is None or backbone is base_of(model):
        return False
    device = next(model.parameters()).device
    generator, wanted = torch.Generator().manual_seed(0), []

    def substitute(module: Any, arguments: Any, output: Any) -> Any:
        hidden = output.last_hidden_state
        drawn = torch.randn(hidden.shape, generator=generator).to(hidden)
        drawn *= _LARGE / apply_head(head, drawn).abs().max()
        wanted.append(apply_head(head, drawn).float())
        output.last_hidden_state = drawn
        return output

    hook = backbone.register_forward_hook(substitute)
    with answering(model), hook:
        logits = model(input_ids=torch.ones((1, 3), dtype=torch.long, device=device), use_cache=False).logits.float()
    # An architecture that reaches past its backbone never met the hook.
    return bool(wanted) and float((logits - wanted[0]).abs().max()) <= noise(model) * float(logits.abs().max())
