"""What a model that is sharded over devices asks of the loop; on one device and under DDP nothing changes.

    FSDP2              through accelerate: tested over gloo on two processes, in float32 and bfloat16
    DeepSpeed ZeRO-3   through its engine: the same

In: an Accelerator, the objective, the optimizer. Out: the same, sharded; a backward pass, an update. Trade-off: both
reduce gradients after every micro-batch, which costs communication and saves each device the gradients of the whole
model.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy

from spt.config import Train
from spt.errors import InputError


def shard(accelerator: Accelerator, objective: Any, optimizer: Any, settings: Train) -> tuple[Any, Any]:
    """Return the objective and the optimizer as accelerate prepares them.

    Raises InputError for a strategy that this loop does not train with.
    """
    if accelerator.distributed_type == DistributedType.FSDP:
        _settle_fsdp(accelerator)
    elif accelerator.distributed_type == DistributedType.DEEPSPEED:
        _settle_deepspeed(accelerator, settings)
    prepared: tuple[Any, Any] = accelerator.prepare(objective, optimizer)
    return prepared


def _settle_fsdp(accelerator: Accelerator) -> None:
    if not accelerator.is_fsdp2:
        raise InputError("fsdp_version: 1 given; this loop trains with 2, as in configs/accelerate/fsdp2.yaml")
    if accelerator.mixed_precision == "bf16":
        # accelerate's own policy would round to bfloat16 what the objective returns, a sum over thousands of tokens,
        # and the sums of gradients over devices.
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        accelerator.state.fsdp_plugin.mixed_precision_policy = policy


def _settle_deepspeed(accelerator: Accelerator, settings: Train) -> None:
    if settings.eval_steps is not None:
        raise InputError(
            f"train.eval_steps: {settings.eval_steps}, but a model that DeepSpeed trains cannot be asked; leave it out "
            "and run `spt evaluate` afterwards, or train with FSDP2 (configs/accelerate/fsdp2.yaml)"
        )
    accelerator.state.deepspeed_plugin.deepspeed_config.update(
        train_micro_batch_size_per_gpu=settings.micro_batch_size,
        gradient_accumulation_steps=1,  # the loop divides its loss by itself
        gradient_clipping=settings.max_grad_norm,
        communication_data_type="fp32",
        data_types={"grad_accum_dtype": "fp32"},
        zero_force_ds_cpu_optimizer=False,  # where the moments are in main memory too, the optimizer is the loop's
    )


def engine_of(objective: Any) -> Any:
    """Return DeepSpeed's engine where the objective is one, otherwise None."""
    return objective if hasattr(objective, "set_gradient_accumulation_boundary") else None


def micro_batch(accelerator: Accelerator, objective: Any, *, last: bool) -> AbstractContextManager[None]:
    """Return the context of one forward and backward pass: until the last, DDP keeps gradients to itself."""
    if engine_of(objective) is not None:
        objective.set_gradient_accumulation_boundary(last)
    if last or accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        return nullcontext()
    return accelerator.no_sync(objective)  # type: ignore[no-any-return]  # accelerate is untyped


def backward(accelerator: Accelerator, objective: Any, loss: torch.Tensor) -> None:
    """Add the gradients of a loss, averaged over ranks; accelerate would let DeepSpeed update with each of them."""
    (engine_of(objective) or accelerator).backward(loss)


def update(
    accelerator: Accelerator, objective: Any, optimizer: Any, max_norm: float, check: Callable[[float], None]
) -> float:
    """Update the weights; return the norm of the gradients before they were clipped to `max_norm`.

    `check` gets the norm and may raise: before the update, but with DeepSpeed, which clips and updates in one, after.
    """
    engine = engine_of(objective)
    if engine is not None:
        engine.step()
        norm = float(engine.get_global_grad_norm())
        check(norm)
        return norm
    trained = [parameter for parameter in objective.parameters() if parameter.requires_grad]
    norm = float(accelerator.clip_grad_norm_(trained, max_norm))
    check(norm)
    optimizer.step()
    optimizer.zero_grad()
    return norm


@contextmanager
def whole(objective: Any) -> Iterator[None]:
    """Hold a model of FSDP2 whole on every device: to answer, ranks call its layers, each as often as it needs."""
    units = [module for module in objective.modules() if isinstance(module, FSDPModule)]
    for unit in units:
        unit.set_reshard_after_forward(False, recurse=False)
        unit.unshard()
    try:
        yield
    finally:
        for unit in units:
            unit.set_reshard_after_forward(unit is not objective, recurse=False)
            unit.reshard()
