"""Model and batch → the summed loss in nats.

The sum is divided once, by the target tokens of the whole global step, in the loop. An objective is a module around the
model, so that the hooks of DDP and FSDP see one forward. Trade-off: the logits of a whole micro-batch are in memory.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from spt.encode import IGNORED


class CausalLoss(nn.Module):
    """Next-token prediction."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "batch tokens"],
        attention_mask: Int[Tensor, "batch tokens"],
        labels: Int[Tensor, "batch tokens"],
    ) -> Float[Tensor, ""]:
        """Return the sum over target tokens of -log p, in nats, in float32."""
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
        # Only rows that are learned are raised to float32: padding would cost a vocabulary each.
        learned = labels[:, 1:] != IGNORED
        picked = logits[:, :-1][learned].float()
        if not len(picked):
            return logits.sum().float() * 0.0  # a row of weight zero still takes part in the backward pass
        return functional.cross_entropy(picked, labels[:, 1:][learned], reduction="sum")


OBJECTIVES: Mapping[str, type[CausalLoss]] = {"causal": CausalLoss}


def target_log_probabilities(
    logits: Float[Tensor, "batch tokens vocabulary"], labels: Int[Tensor, "batch tokens"]
) -> Float[Tensor, " batch"]:
    """Return the log-probability of each row's labels, in nats, summed; rows are aligned as in training."""
    learned = labels[:, 1:] != IGNORED
    picked = logits[:, :-1][learned].float()
    nats = functional.cross_entropy(picked, labels[:, 1:][learned], reduction="none")
    rows = learned.nonzero()[:, 0]
    return torch.zeros(len(labels), device=logits.device).index_add_(0, rows, -nats)
