"""How many processes there are, and what they agree on. In: the launcher's environment. Out: an Accelerator.

Trade-off: without a device, several processes talk through gloo on the CPU; accelerate would look for NCCL.
"""

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from spt.config import Config


def make_accelerator(config: Config) -> Accelerator:
    """Return an Accelerator in the configured precision."""
    precision = "bf16" if config.model.dtype == "bfloat16" else "no"
    return Accelerator(mixed_precision=precision, cpu=not torch.accelerator.is_available())


def leave() -> None:
    """Wait for the other ranks and take the process group down: one that is left standing may abort at exit."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def agreed(answer: bool, config: Config) -> bool:
    """Return rank 0's answer on every rank."""
    answers = [answer]
    if make_accelerator(config).num_processes > 1:
        broadcast_object_list(answers)
    return answers[0]
