"""How many processes there are, and what they agree on. In: the launcher's environment. Out: an Accelerator.

A rank that dies is noticed by its launcher (torch's agent ends the others, at the latest 30 seconds later) and by the
others' collectives: gloo's fail as the connection closes, NCCL's are aborted by its watchdog
(`TORCH_NCCL_ASYNC_ERROR_HANDLING`, which torch's launcher sets). A rank that hangs without dying, or a node that
vanishes, is only noticed by the timeout of a collective. While rank 0 writes a large model or scores, the others wait
in one: so the timeout is `PATIENCE`, not a minute.

Trade-off: without a device, several processes talk through gloo on the CPU; accelerate would look for NCCL.
"""

import os
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import (
    DistributedDataParallelKwargs,
    DistributedType,
    InitProcessGroupKwargs,
    broadcast_object_list,
    gather_object,
    parse_flag_from_env,
)

from spt.checkpoint.ranks import has_group
from spt.config import Config
from spt.errors import InputError

PATIENCE = timedelta(hours=1)
"""How long a collective waits for a rank: longer than any work that one rank does while the others wait."""

_IN_BUCKETS = DistributedDataParallelKwargs(gradient_as_bucket_view=True)
"""Gradients lie where DDP sums them, rather than being copied there and back."""

_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""Where launchers say how many processes they started: torch's and accelerate's, MPI's, Slurm's `srun`."""

TWO_PROCESSES = "start them with `spt train CONFIG --launch N`, or with torchrun"


def make_accelerator(config: Config) -> Accelerator:
    """Return an Accelerator in the configured precision.

    Raises InputError where it is not in the world that the launcher was asked for.
    """
    asked = asked_world(os.environ)  # before accelerate, which writes WORLD_SIZE itself
    check_devices(int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    precision = "bf16" if config.model.dtype == "bfloat16" else "no"
    if AcceleratorState._shared_state and AcceleratorState().mixed_precision != precision:
        AcceleratorState._reset_state()  # another training in this process; the process group stays
    accelerator = Accelerator(
        mixed_precision=precision,
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=PATIENCE), _IN_BUCKETS],
    )
    if accelerator.num_processes != asked:
        raise InputError(
            f"{asked} processes were asked for, but this one finds itself in a group of {accelerator.num_processes}; "
            f"{TWO_PROCESSES}, which gives each of them RANK, LOCAL_RANK and WORLD_SIZE"
        )
    for asked_for, name in (("ACCELERATE_USE_FSDP", "FSDP"), ("ACCELERATE_USE_DEEPSPEED", "DEEPSPEED")):
        if parse_flag_from_env(asked_for) and accelerator.distributed_type != DistributedType[name]:
            found = accelerator.distributed_type.value
            raise InputError(f"{name} was asked for, but accelerate gives {found}: it needs GPUs and a launcher")
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        from transformers.integrations.deepspeed import unset_hf_deepspeed_config

        unset_hf_deepspeed_config()  # transformers would shard every model as it is loaded: too early, and to be asked
    return accelerator


def asked_world(environment: Mapping[str, str]) -> int:
    """Return how many processes the launcher was asked for, 1 where there is none.

    `accelerate launch --num_processes N` without a device starts one process, and names a meeting place for N: it gives
    no number, but the place without a rank shows it. Raises InputError.
    """
    sizes = [environment[name] for name in _SIZES if environment.get(name, "").isdigit()]
    if not sizes and "MASTER_ADDR" in environment and "ACCELERATE_MIXED_PRECISION" in environment:
        raise InputError(
            "accelerate launch was asked for several processes and started one (it does so where it finds no GPU); "
            + TWO_PROCESSES
        )
    return int(sizes[0]) if sizes else 1


def check_devices(local_ranks: int) -> None:
    """Raise InputError where this machine has fewer devices than processes: accelerate would let them share one."""
    devices = count_devices()
    if devices and local_ranks > devices:
        raise InputError(
            f"{local_ranks} processes on this machine, but it has {devices} device{'s' * (devices > 1)}; start at most "
            f"{devices}, or train on the CPU with ACCELERATE_USE_CPU=true"
        )


def count_devices() -> int:
    """Return the number of accelerators that may be used on this machine."""
    if parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available():
        return 0
    return torch.accelerator.device_count()


def leave() -> None:
    """Wait for the other ranks and take the process group down: one that is left standing may abort at exit."""
    if has_group():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def agreed(answer: bool, config: Config) -> bool:
    """Return rank 0's answer on every rank."""
    answers = [answer]
    if make_accelerator(config).num_processes > 1:
        broadcast_object_list(answers)
    return answers[0]


def add_counts(totals: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    """Return totals with the counts of every rank added; every rank calls it with the same totals."""
    added = Counter(totals)
    for each in gather_object([dict(counts)]):
        added.update(each)
    return dict(added)
