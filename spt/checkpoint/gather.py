"""A sharded model → a whole one on rank 0, for the final folder.

In: a model whose parameters are spread over ranks (FSDP2, DeepSpeed ZeRO-3). Out: the same object with its parameters
whole, on the CPU of rank 0; on the other ranks it is of no more use. Trade-off: rank 0 needs main memory for all that
is gathered, so an adapter's base stays where it is.
"""

from contextlib import nullcontext
from typing import Any

import torch

from spt.checkpoint.ranks import rank_and_world


def gather(model: Any, *, only_trained: bool = False) -> None:
    """Make the parameters of a sharded model whole on rank 0 (`only_trained`: those alone); every rank calls it.

    One parameter after another, so that no device holds the model whole. Without sharded parameters nothing changes.
    ZeRO-3's branch is tested where DeepSpeed is installed.
    """
    main = rank_and_world()[0] == 0
    whole: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    model.state_dict()  # FSDP2 may hold some parameters whole after a forward pass; asked for its state, it shards them
    for module in model.modules():
        if hasattr(module, "reshard") and not only_trained:
            module.__class__ = type(module).__mro__[2]  # (FSDP's, FSDPModule, its own): undoes `fully_shard`'s swap
        for name, parameter in module.named_parameters(recurse=False):
            if not _is_spread(parameter) or (only_trained and not parameter.requires_grad):
                continue
            if parameter not in whole:  # tied parameters stay tied
                whole[parameter] = _whole(parameter, keep=main)
            module._parameters[name] = whole[parameter]


def _is_spread(parameter: torch.nn.Parameter) -> bool:
    return hasattr(parameter, "full_tensor") or hasattr(parameter, "ds_id")


def _whole(parameter: torch.nn.Parameter, *, keep: bool) -> torch.nn.Parameter:
    with _gathered(parameter):
        full = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        tensor = full.detach().cpu().clone() if keep else torch.empty(0, dtype=parameter.dtype)
    return torch.nn.Parameter(tensor, requires_grad=parameter.requires_grad)


def _gathered(parameter: torch.nn.Parameter) -> Any:
    if not hasattr(parameter, "ds_id"):
        return nullcontext()
    from deepspeed import zero

    return zero.GatheredParameters([parameter])
