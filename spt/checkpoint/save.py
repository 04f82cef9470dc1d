"""Save and resume: a training in progress ⇄ `checkpoints/step-000250/`.

    *.safetensors   what is trained, and the optimizer's tensors
    optimizer.pt    the optimizer's other values, the schedule, the generators of every rank
    state.json      written last: the step and its sums, and size and hash of every other file

The data needs no state: which records and orders come next is a function of the step. Trade-off: every checkpoint is a
full copy of what is trained; `save_total_limit` bounds how many stay.
"""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch.distributed.checkpoint.api import CheckpointException

from spt.artifact import dump_json, read_json, write_atomically
from spt.checkpoint.folder import Files, at_step, check_files, newest_good, prune, publish, seal
from spt.checkpoint.ranks import rank_and_world, wait
from spt.checkpoint.state import State, Trained, restore_generators
from spt.checkpoint.tensors import (
    Values,
    is_sharded,
    model_tensors,
    put_back,
    read_into,
    take_apart,
    write_shards,
    write_whole,
)
from spt.errors import DamagedError, MissingError, WorkError

ENGINE = "deepspeed"
"""The folder in which DeepSpeed keeps its own form; tested where it is installed."""

WRITE_ERRORS = (SafetensorError, RuntimeError, CheckpointException)  # a full disk is none of these writers' own errors
READ_ERRORS = (Exception, CheckpointException)  # what readers of three formats raise on bytes that are not theirs


def save_checkpoint(folder: Path, state: State, trained: Trained, generators: list[dict[str, Any]], keep: int) -> None:
    """Write `folder/step-NNNNNN`, then remove all but the newest `keep`, the best, and the last complete one.

    Every rank calls it: a sharded model is written by all (into a folder that all machines share), another by rank 0.
    `generators` has one entry a rank. Raises WorkError where it cannot be written.
    """
    main, shared = rank_and_world()[0] == 0, trained.engine is not None or is_sharded(trained.model)
    if not (main or shared):
        return
    final = at_step(folder, state.step)
    temporary = final.with_name(f".{final.name}.tmp")
    try:
        _make_empty(temporary, main=main, shared=shared)
        values = _write(temporary, trained, shared=shared)
        if shared:
            wait()
        if main:
            rest = {"optimizer": values, "scheduler": trained.scheduler.state_dict(), "generators": generators}
            torch.save(rest, temporary / "optimizer.pt")
    except WRITE_ERRORS as error:
        raise WorkError(f"{temporary}: cannot be written ({error}); make room and run again") from error
    if main:
        # The hashes and then the step come last; the folder gets its name when all of it is on disk.
        write_atomically(temporary / "state.json", dump_json({**asdict(state), "files": seal(temporary)}))
        publish(temporary, final)
        prune(folder, keep, state.best_step)


def _make_empty(folder: Path, *, main: bool, shared: bool) -> None:
    if main:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    if shared:
        wait()
        if not folder.is_dir():
            raise WorkError(f"{folder}: is not there for every rank; give an --output that all machines share")


def _write(folder: Path, trained: Trained, *, shared: bool) -> Values:
    """Write every tensor; return the optimizer's other values."""
    if trained.engine is not None:
        trained.engine.save_checkpoint(str(folder / ENGINE), tag="step", exclude_frozen_parameters=True)
        return {}
    tensors, values = take_apart(trained)
    (write_shards if shared else write_whole)(folder, tensors)
    return values


def load_checkpoint(path: Path, trained: Trained, rank: int, steps: int) -> State:
    """Return the state of a checkpoint, put back into the model, the optimizer, the schedule and the generators.

    Every rank calls it. Raises DamagedError where it is not whole, does not fit the model, or lies beyond the `steps`
    of this training; the message names an older one that is good.
    """
    try:
        state, files = _read_state(path, steps)
        check_files(path, files)
        rest = torch.load(path / "optimizer.pt", map_location="cpu", weights_only=True)
        if trained.engine is not None:
            trained.engine.load_checkpoint(str(path / ENGINE), tag="step", load_module_strict=False)
        else:
            tensors, _ = take_apart(trained)
            read_into(tensors, path)
            put_back(trained, tensors, rest["optimizer"])
        trained.scheduler.load_state_dict(rest["scheduler"])
        # Another number of ranks draws the same data; only dropout then goes on from rank 0's generator.
        restore_generators(rest["generators"][rank if rank < len(rest["generators"]) else 0])
    except MissingError:  # of what reads it; the checkpoint is as good as before
        raise
    except READ_ERRORS as error:
        raise _damaged(path, error) from error
    return state


def load_weights(path: Path, trained: Trained) -> None:
    """Put a checkpoint's weights back into the model, and nothing else: training ends with them. Every rank calls it.

    Raises DamagedError where they are not as they were written.
    """
    try:
        check_files(path, read_json(path / "state.json").get("files", {}))
        if trained.engine is not None:
            trained.engine.load_checkpoint(
                str(path / ENGINE), tag="step", load_module_strict=False, load_module_only=True
            )
        else:
            read_into(model_tensors(trained.model), path, only_model=True)
    except MissingError:
        raise
    except READ_ERRORS as error:
        raise _damaged(path, error) from error


def _read_state(path: Path, steps: int) -> tuple[State, Files]:
    written = read_json(path / "state.json")
    files = written.pop("files", {})
    state = State(**written)
    if not 0 < state.step <= steps:
        raise ValueError(f"its step is {state.step}, where training has {steps}")
    if path != at_step(path.parent, state.step):
        raise ValueError(f"its step is {state.step}, which is not the one in its name")
    return state, files


def _damaged(path: Path, error: BaseException) -> DamagedError:
    number = path.name.removeprefix("step-")
    older = newest_good(path.parent, before=int(number)) if number.isdigit() else None
    go_on = f"go on from {older.name}, which is whole" if older else "begin at the first step (no older one is whole)"
    return DamagedError(
        f"{path}: not a whole checkpoint of this training ({type(error).__name__}: {error}). Remove this folder to "
        f"{go_on}, or start anew with --force."
    )
