"""Full attention of a causal model, for one forward pass: nothing of the model is changed.

In: a model, and which tokens of a padded batch may be seen. Out: the four-dimensional mask that transformers' models
take as it is, and a check that the architecture does. Trade-off: kernels of flash attention take no such mask, and are
refused.
"""

from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from spt.errors import ModelError
from spt.model.attention import NAME
from spt.model.check import answering, noise
from spt.model.head import backbone_of, base_of
from spt.model.mirror import mirror
from spt.model.source import first_line

_MIRRORED = ("llama", "mistral", "qwen2", "qwen3")
"""Architectures whose every layer turns whole heads by rotary embeddings, in halves, and hands on what ours needs."""


def full_mask(model: Any, visible: Bool[Tensor, "rows width"]) -> Tensor:
    """Return the mask [rows, 1, width, width] by which every token attends to all visible ones."""
    mask = visible[:, None, None].expand(-1, 1, visible.shape[1], -1)
    if base_of(model).config._attn_implementation != "eager":
        return mask
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, torch.finfo(torch.float32).min)  # it is added


def check_full(model: Any) -> None:
    """Raise ModelError for a model that does not attend as the full mask says."""
    kind, used = model.config.model_type, base_of(model).config._attn_implementation
    if used not in ("eager", "sdpa", NAME):
        raise ModelError(
            f"train.objective: masked tokens need full attention, which {used} has not; use "
            "model.attn_implementation: sdpa"
        )
    try:
        with answering(model):
            seen, hidden = _reach(model)
    except (TypeError, ValueError, RuntimeError, KeyError, IndexError) as error:
        raise ModelError(_unfit(kind, first_line(error))) from error
    if seen == 0 or hidden > noise(model):
        raise ModelError(_unfit(kind, "a token does not see what the mask shows it"))


def _unfit(kind: str, reason: str) -> str:
    return f"train.objective: the {kind} model cannot attend to both sides ({reason}); use objective: causal"


@torch.inference_mode()
def _reach(model: Any) -> tuple[float, float]:
    """Return by which share the first logits change with the last token where it is visible, and where it is not."""
    device = next(model.parameters()).device
    ids = torch.tensor([[1, 2, 3], [1, 2, 4]], device=device)
    shares = []
    for last in (True, False):
        mask = full_mask(model, torch.tensor([[True, True, last]] * 2, device=device))
        first = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, 0].float()
        shares.append(float((first[0] - first[1]).abs().max() / first.abs().max()))
    return shares[0], shares[1]


def check_mirrored(model: Any) -> None:
    """Raise ModelError for a model whose positions cannot be mirrored."""
    kind, used = model.config.model_type, base_of(model).config._attn_implementation
    if kind not in _MIRRORED:
        raise ModelError(
            f"train.objective: bico turns rotary embeddings, which is made for {', '.join(_MIRRORED)} (Llama, SmolLM2, "
            f"Mistral, Qwen2, Qwen3), not for {kind}; use such a model, or objective: mlm_u"
        )
    if used != NAME:
        raise ModelError(
            f"train.objective: bico needs its own attention, which stands in for sdpa, not {used}; leave "
            "model.attn_implementation out"
        )
    rotary, size = mirror(model, 2)[0].shape[-1], backbone_of(model).layers[0].self_attn.head_dim
    if rotary != size:
        raise ModelError(
            f"train.objective: bico turns whole heads, but this {kind} model turns {rotary} of {size} dimensions; "
            "use objective: mlm_u"
        )
    check_full(model)
