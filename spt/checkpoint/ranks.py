"""What the ranks of one training tell each other about its checkpoints. Without a process group there is one rank.

Trade-off: a problem of any rank is every rank's, so that none waits for one that has stopped.
"""

import torch.distributed as dist


def has_group() -> bool:
    """Return whether this process is one rank of a process group."""
    return dist.is_available() and dist.is_initialized()


def rank_and_world() -> tuple[int, int]:
    """Return this process's rank, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if has_group() else (0, 1)


def first_of_ranks(value: str | None) -> str | None:
    """Return the value of the first rank that has one, on every rank. All ranks must call it."""
    values = [value]
    if has_group():
        values = [None] * dist.get_world_size()
        dist.all_gather_object(values, value)
    return next((one for one in values if one is not None), None)


def wait() -> None:
    """Wait until every rank is here."""
    if has_group():
        dist.barrier()
