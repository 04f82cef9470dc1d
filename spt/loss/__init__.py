"""Objectives: model and batch → the summed loss in nats, and how examples become such a batch.

The sum is divided once, by the target tokens of the whole global step, in the loop. An objective is a module around the
model, so that the hooks of DDP and FSDP see one forward; it leaves the model as it is, so that asking stays causal.
"""

from collections.abc import Mapping

from spt.loss.causal import CausalLoss, head_loss
from spt.loss.draw import Draw
from spt.loss.masked import BicoLoss, UniformMaskedLoss

OBJECTIVES: Mapping[str, type[CausalLoss]] = {"causal": CausalLoss, "bico": BicoLoss, "mlm_u": UniformMaskedLoss}
"""`train.objective` by name."""

__all__ = [
    "OBJECTIVES",
    "BicoLoss",
    "CausalLoss",
    "Draw",
    "UniformMaskedLoss",
    "head_loss",
]
