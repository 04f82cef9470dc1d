"""The folder of checkpoints: which are whole, which stay, and what lies in them, by size and hash.

    checkpoints/step-000250/   *.safetensors  optimizer.pt  state.json (last: sizes and hashes of the others)

A folder is written under another name, synced and renamed, so a killed run leaves whole checkpoints only. Trade-off:
every file is read once more to be hashed, so that a bit that turned on disk is found before it is learned from.
"""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from spt.artifact import hash_file, read_json
from spt.checkpoint.ranks import first_of_ranks, rank_and_world
from spt.errors import DamagedError

Files = dict[str, dict[str, Any]]


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first: those whose writing was finished."""
    whole = (path for path in folder.glob("step-*") if (path / "state.json").exists() and path.name[5:].isdigit())
    return sorted(whole, key=_step)


def at_step(folder: Path, step: int) -> Path:
    """Return where the checkpoint of a step lies."""
    return folder / f"step-{step:06d}"


def _step(path: Path) -> int:
    return int(path.name[5:])


def newest_good(folder: Path, before: int | None = None) -> Path | None:
    """Return the newest checkpoint (of a step below `before`) that is as it was written, or None where there is none.

    It reads every byte, so it is for the moment when something has gone wrong.
    """
    older = (path for path in reversed(checkpoints(folder)) if before is None or _step(path) < before)
    return next((path for path in older if _is_good(path)), None)


def _is_good(path: Path) -> bool:
    try:
        return problem(path, read_json(path / "state.json").get("files", {})) is None
    except DamagedError:
        return False


def prune(folder: Path, keep: int, best_step: int | None = None) -> None:
    """Remove all but the newest `keep` checkpoints, and what a killed process left of others.

    Never removes the best step's, nor the newest one that is complete.
    """
    found = checkpoints(folder)
    complete = [path for path in found if _is_complete(path)]
    kept = {*found[-keep:], *complete[-1:]}
    for old in found:
        if old not in kept and _step(old) != best_step:
            set_aside(old)
    for left in folder.glob(".step-*.tmp"):
        shutil.rmtree(left)


def set_aside(path: Path) -> Path:
    """Return where a folder went whose name is taken from it: never half of one under a good name."""
    aside = path.with_name(f".{path.name}.old.tmp")
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        path.rename(aside)
    return aside


def publish(temporary: Path, final: Path) -> None:
    """Give a finished folder its name, in place of an older one, once all of it is on disk."""
    for path in (*temporary.rglob("*"), temporary):
        sync(path)
    aside = set_aside(final)
    os.replace(temporary, final)
    sync(final.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _is_complete(path: Path) -> bool:
    """Return whether every file has the size it was written with; their bytes are not read."""
    try:
        files = read_json(path / "state.json").get("files", {})
    except DamagedError:
        return False
    return all(_size(path / name) == written["bytes"] for name, written in files.items())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def seal(folder: Path) -> Files:
    """Return size and SHA-256 of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter
        hashes = list(pool.map(hash_file, files))
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": digest}
        for path, digest in zip(files, hashes, strict=True)
    }


def problem(folder: Path, files: Files) -> str | None:
    """Return what is wrong with the files of a checkpoint (None: nothing)."""
    for name, written in files.items():
        size = _size(folder / name)
        if size != written["bytes"]:
            return f"{name} has {max(size, 0)} bytes where {written['bytes']} were written"
        if hash_file(folder / name) != written["sha256"]:
            return f"{name} holds other bytes than were written"
    return None


def check_files(folder: Path, files: Files) -> None:
    """Raise ValueError, on every rank, where a file is not as it was written. The ranks share the reading."""
    rank, world = rank_and_world()
    mine = dict(sorted(files.items())[rank::world])
    wrong = first_of_ranks(problem(folder, mine))
    if wrong is not None:
        raise ValueError(wrong)


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
