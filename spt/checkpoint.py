"""Save and resume: what is trained, the optimizer, the schedule, the generators, and the step.

    checkpoints/step-000250/   trained.safetensors  optimizer.pt  state.json (last)

The data needs no state: which records and orders come next is a function of the step. A folder is written under another
name, synced and renamed, so a killed run leaves whole checkpoints only. Trade-off: every checkpoint is a full copy of
what is trained; `save_total_limit` bounds how many stay.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from spt.artifact import dump_json, read_json, write_atomically
from spt.errors import DamagedError, NonFiniteError, WorkError


@dataclass
class State:
    """Where training stands: steps done, what was summed up since the last log line, what encoding counted."""

    step: int = 0
    nats: float = 0.0
    target_tokens: int = 0
    total_tokens: int = 0
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """The objects whose state a checkpoint holds; `model` is unwrapped."""

    model: Any
    optimizer: Any
    scheduler: Any


def save_checkpoint(folder: Path, state: State, trained: Trained, generators: list[dict[str, Any]], keep: int) -> None:
    """Write `folder/step-NNNNNN`, then remove all but the newest `keep`; `generators` has one entry a rank."""
    final = folder / f"step-{state.step:06d}"
    temporary = folder / f".step-{state.step:06d}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    rest = {
        "optimizer": trained.optimizer.state_dict(),
        "scheduler": trained.scheduler.state_dict(),
        "generators": generators,
    }
    try:
        save_file(_trained_tensors(trained.model), temporary / "trained.safetensors")
        torch.save(rest, temporary / "optimizer.pt")
    except (SafetensorError, RuntimeError) as error:  # a full disk is none of these writers' own errors
        raise WorkError(f"{temporary}: cannot be written ({error}); make room and run again") from error
    for file in temporary.iterdir():
        sync(file)
    write_atomically(temporary / "state.json", dump_json(asdict(state)))
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    sync(folder)
    prune(folder, keep)


def checkpoints(folder: Path) -> list[Path]:
    """Return the whole checkpoints in a folder, oldest first."""
    whole = (path for path in folder.glob("step-*") if (path / "state.json").exists() and path.name[5:].isdigit())
    return sorted(whole, key=lambda path: int(path.name[5:]))


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints, and what a killed process left of others."""
    for old in checkpoints(folder)[:-keep]:
        old.rename(old.with_name(f".{old.name}.tmp"))  # never half a checkpoint under a good name
    for left in folder.glob(".step-*.tmp"):
        shutil.rmtree(left)


def load_checkpoint(path: Path, trained: Trained, rank: int, steps: int) -> State:
    """Return the state of a checkpoint, put back into the model, the optimizer, the schedule and the generators.

    Raises DamagedError where it is not whole, does not fit the model, or lies beyond the `steps` of this training.
    """
    try:
        state = State(**read_json(path / "state.json"))
        if not 0 < state.step <= steps:
            raise ValueError(f"its step is {state.step}, where training has {steps}")
        _put_back(load_file(path / "trained.safetensors"), trained.model)
        rest = torch.load(path / "optimizer.pt", map_location="cpu", weights_only=True)
        trained.optimizer.load_state_dict(rest["optimizer"])
        trained.scheduler.load_state_dict(rest["scheduler"])
        # Another number of ranks draws the same data; only dropout then goes on from rank 0's generator.
        restore_generators(rest["generators"][rank if rank < len(rest["generators"]) else 0])
    except Exception as error:  # what readers of three formats raise on bytes that are not theirs
        raise DamagedError(
            f"{path}: not a whole checkpoint of this training ({type(error).__name__}: {error}). Remove this folder to "
            "go on from an older checkpoint, or start anew with --force."
        ) from error
    return state


def _put_back(tensors: dict[str, torch.Tensor], model: Any) -> None:
    own = _trained_tensors(model)
    if tensors.keys() != own.keys():
        raise ValueError(f"parameters differ: {sorted(tensors.keys() ^ own.keys())[:3]}")
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)


def generators() -> dict[str, Any]:
    """Return the state of this process's random generators (dropout draws from them)."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_generators(states: dict[str, Any]) -> None:
    """Set this process's random generators to a saved state."""
    torch.set_rng_state(states["cpu"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


def truncate_log(path: Path, step: int) -> None:
    """Drop log lines of steps after `step`, and a last line that was cut off: the resumed run writes them again."""
    if not path.exists():
        return
    kept = []
    for line in path.read_bytes().splitlines():
        try:
            last = json.loads(line)["step"]
        except (ValueError, TypeError, KeyError):
            break
        if last <= step:
            kept.append(line + b"\n")
    write_atomically(path, b"".join(kept))


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_finite(model: Any, step: int) -> None:
    """Raise NonFiniteError where a trained parameter is not a number: such a model is never saved."""
    for name, tensor in _trained_tensors(model).items():
        if not torch.isfinite(tensor).all():
            raise NonFiniteError(
                f"step {step}: the update made {name} infinite or not a number, so nothing was saved. Start anew with "
                "--force and a lower train.learning_rate."
            )


def _trained_tensors(model: Any) -> dict[str, torch.Tensor]:
    return {name: parameter.data for name, parameter in model.named_parameters() if parameter.requires_grad}
