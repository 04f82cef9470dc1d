"""A stage's output folder: a key written first, a manifest written last, both atomically.

    key.json        what the output depends on; written before the work starts
    manifest.json   key, versions, counts; its presence means the stage is finished
    .replaced/      a finished output that --force replaces, kept until the new one is finished

In: a folder and a key. Out: whether to reuse, continue or start. Trade-off: a key covers the source code of what
computes the stage, so editing that code makes old outputs stale even where the edit changes nothing. What replaces an
output is made in its place and not beside it, so that it is continued like any other; the old one is set aside.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock, Timeout

from spt.errors import DamagedError, InputError, StaleError

Key = Mapping[str, Any]
_REPLACED = ".replaced"


def dump_json(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON text that is the same for equal values: sorted keys, UTF-8 kept, no NaN."""
    return json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False)


def write_atomically(path: Path, data: str | bytes | Iterable[str]) -> None:
    """Write a file, given whole or in parts, so that a reader finds the old content or the new, never some of it.

    Raises InputError where its folder is none, OSError with the file's name.
    """
    parts = [data] if isinstance(data, str | bytes) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"{path}: {error.filename} is no folder; choose another place to write to") from None
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(part.encode("utf-8") if isinstance(part, str) else part for part in parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # as of a full disk
            error.filename = str(path)
        raise


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(paths: Iterable[Path]) -> str:
    """Return one SHA-256 over the contents of several files, in the order given."""
    joined = "".join(hash_file(path) for path in paths)
    return hashlib.sha256(joined.encode()).hexdigest()


def hash_code(*modules: ModuleType) -> str:
    """Return a short hash of the source of modules and packages: the version of what computes a stage."""
    code = hashlib.sha256()
    for module in modules:
        path = Path(str(module.__file__))
        for file in sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]:
            code.update(f"{module.__name__} {file.relative_to(path.parent).as_posix()} {hash_file(file)}\n".encode())
    return code.hexdigest()[:12]


def versions(*distributions: str) -> dict[str, str]:
    """Return the installed versions of distributions."""
    return {name: metadata.version(name) for name in distributions}


def changed_keys(old: Key, new: Key, prefix: str = "") -> list[str]:
    """Return a line for each value that differs: `train.epochs: 10 -> 20`."""
    lines: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = (key.get(name, _ABSENT) for key in (old, new))
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += changed_keys(before, after, f"{prefix}{name}.")
        elif _ABSENT in (before, after) or dump_json(before) != dump_json(after):
            # As JSON, since that is what a key is on disk: 1, 1.0 and true differ, a tuple and a list do not.
            what = " (another version of spt)" if name == "code" else ""
            lines.append(f"{prefix}{name}{what}: {_shown(before)} -> {_shown(after)}")
    return lines


_ABSENT: Any = object()


def _shown(value: Any) -> str:
    return "absent" if value is _ABSENT else dump_json(value, indent=None)


@dataclass(frozen=True)
class Stage:
    """An output folder under one key.

    `finished` says whether its manifest was there when it was opened.
    """

    folder: Path
    key: Key
    finished: bool

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the manifest of a finished stage."""
        return read_json(self.folder / "manifest.json")

    def finish(self, **fields: Any) -> None:
        """Write the manifest: the key and `fields`; what this replaces is deleted. The last thing a stage does."""
        write_atomically(self.folder / "manifest.json", dump_json({"key": self.key, **fields}) + "\n")
        _settle(self.folder)


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object written by a stage.

    Raises DamagedError where it is not one.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedError(
            f"{path}: cannot be read as JSON ({error}); delete its folder, or run with --force"
        ) from None
    if not isinstance(value, dict):
        raise DamagedError(f"{path}: holds no JSON object; delete its folder, or run with --force")
    return value


@contextmanager
def open_stage(folder: Path, key: Key, *, force: bool = False) -> Iterator[Stage]:
    """Yield the stage in `folder`, locked against a second writer.

    A folder with the same key is kept (finished: reuse it; unfinished: continue). With another key it is refused,
    unless `force`, which starts anew: a finished output is set aside until the new one is finished, an unfinished one
    deleted. Raises StaleError, and InputError where no folder can be made.
    """
    key = json.loads(dump_json(key))
    with sole_writer(folder):
        _settle(folder)
        if force:
            _set_aside(folder)
        _claim(folder, key)
        yield Stage(folder, key, finished=(folder / "manifest.json").exists())


@contextmanager
def sole_writer(folder: Path, other: str = "another process is writing here") -> Iterator[None]:
    """Hold a folder, made where it is missing, against any other process that would write there.

    `other` says what one does. Raises StaleError where one is there, InputError where no folder can be made.
    """
    lock = FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = lock.acquire(timeout=0)
    except Timeout:
        raise StaleError(f"{folder}: {other}; wait for it, or choose another --output") from None
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made or written to ({error.strerror}); choose another --output"
        ) from None
    with held:
        yield


def _claim(folder: Path, key: Key) -> None:
    for unfinished in folder.glob(".*.tmp"):  # a writer was killed between writing it and naming it
        _remove(unfinished)
    path = folder / "key.json"
    if path.exists():
        changes = changed_keys(read_json(path), key)
        if changes:
            listed = "\n  ".join(changes)
            aside = folder / _REPLACED
            kept = f"\nThe finished output that it is to replace is still in {aside}." if aside.exists() else ""
            raise StaleError(
                f"{folder} was made with another configuration:\n  {listed}\n"
                f"Choose another --output, set the values back, or run with --force to replace it.{kept}"
            )
    elif any(not entry.name.startswith(".") for entry in folder.iterdir()):
        raise StaleError(f"{folder} holds files that spt did not write; choose another --output, or run with --force")
    else:
        write_atomically(path, dump_json(key) + "\n")


def _set_aside(folder: Path) -> None:
    """Move a finished output into `.replaced`; delete an unfinished one, but not what that was to replace."""
    aside = folder / _REPLACED
    finished = (folder / "manifest.json").exists() and (folder / "key.json").exists()
    if finished:
        aside.mkdir()
    for entry in _entries(folder):
        if finished:
            entry.rename(aside / entry.name)
        else:
            _remove(entry)


def _settle(folder: Path) -> None:
    """Finish what a killed process began: delete what was replaced, or put back what was set aside only in part."""
    aside = folder / _REPLACED
    if not aside.exists():
        return
    if not (folder / "manifest.json").exists() and not (aside / "key.json").exists():
        for entry in reversed(_entries(aside)):
            entry.rename(folder / entry.name)
    if (folder / "manifest.json").exists():
        _remove(aside)


def _entries(folder: Path) -> list[Path]:
    # The manifest first and the key last: killed in between, the folder is an unfinished one, never a finished one
    # without its data, nor one of unknown origin.
    rank = {"manifest.json": 0, "key.json": 2}
    entries = (entry for entry in folder.iterdir() if entry.name not in (".lock", _REPLACED))
    return sorted(entries, key=lambda entry: (rank.get(entry.name, 1), entry.name))


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
