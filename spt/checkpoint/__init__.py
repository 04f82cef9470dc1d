"""Save and resume a training, whole or sharded: objects of the loop ⇄ `checkpoints/step-000250/`."""

from spt.checkpoint.folder import at_step, checkpoints, newest_good, prune, publish, sync
from spt.checkpoint.gather import gather
from spt.checkpoint.log import truncate_log
from spt.checkpoint.save import load_checkpoint, load_weights, save_checkpoint
from spt.checkpoint.state import State, Trained, check_finite, generators
from spt.checkpoint.tensors import is_sharded

__all__ = [
    "State",
    "Trained",
    "at_step",
    "check_finite",
    "checkpoints",
    "gather",
    "generators",
    "is_sharded",
    "load_checkpoint",
    "load_weights",
    "newest_good",
    "prune",
    "publish",
    "save_checkpoint",
    "sync",
    "truncate_log",
]
