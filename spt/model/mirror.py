"""Attention to both sides at the distances that a causal model knows (BICO, arXiv 2311.07468, after its authors' code).

Rotary embeddings turn a query at i and a key at j so that their score depends on i - j, which is never negative in a
causal model. A key *after* the query is scored with both turned backwards: q(-i) . k(-j) depends on j - i as the score
of a key before it does.

           keys   0  1  2
    query 0       0  1  2      distances seen by the model
          1       1  0  1
          2       2  1  0

In: queries and keys that the model has turned by i and j already; turned back by 2i and 2j they stand at -i and -j.
Trade-off: the scores of whole rows are in memory, since no fused kernel knows two scores a pair.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from spt.model.head import backbone_of

Turns = tuple[Tensor, Tensor]
"""Cosines and sines [1, tokens, size] of twice each position's angles."""


@torch.no_grad()
def mirror(model: Any, width: int) -> Turns:
    """Return what turns a model's queries and keys of a row of `width` tokens back, in float32."""
    rotary = backbone_of(model).rotary_emb
    device = rotary.inv_freq.device
    single = rotary(torch.empty(0, device=device), position_ids=torch.arange(width, device=device)[None])
    cos, sin = (part / rotary.attention_scaling for part in single)  # a scaling turns nothing
    return cos.square() - sin.square(), 2 * cos * sin


def attend_mirrored(
    module: Any,
    query: Float[Tensor, "batch heads tokens size"],
    key: Float[Tensor, "batch key_heads tokens size"],
    value: Float[Tensor, "batch key_heads tokens size"],
    visible: Bool[Tensor, "batch 1 tokens tokens"],
    turns: Turns,
    *,
    scaling: float,
    dropout: float,
) -> Float[Tensor, "batch tokens heads size"]:
    """Return what each query attends to of all visible keys, later ones scored at their mirrored positions."""
    groups, dtype = module.num_key_value_groups, query.dtype
    key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    wide = torch.float32 if query.device.type == "cpu" else dtype  # bfloat16 is slow on a CPU
    with torch.autocast(query.device.type, enabled=False):
        back = [_turned_back(part, turns).to(wide) for part in (query, key)]
        query, key, value = (part.to(wide) for part in (query, key, value))
        later = torch.ones(visible.shape[2:], dtype=torch.bool, device=query.device).triu(diagonal=1)
        scores = torch.where(later, back[0] @ back[1].transpose(2, 3), query @ key.transpose(2, 3)) * scaling
        scores = scores.float().masked_fill(~visible, torch.finfo(torch.float32).min)
        weights = functional.dropout(scores.softmax(dim=-1), dropout).to(wide)
        return (weights @ value).transpose(1, 2).contiguous().to(dtype)


def _turned_back(part: Tensor, turns: Turns) -> Tensor:
    cos, sin = (turn[:, None] for turn in turns)
    first, second = part.float().chunk(2, dim=-1)
    return part.float() * cos + torch.cat((second, -first), dim=-1) * sin
