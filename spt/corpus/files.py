"""Which files a path means, and what each is called.

In: the `path` of a source: a file, a glob, a folder, `-`, or a list of them. Out: inputs in reading order. Trade-off:
folders and globs take the files whose extension is known and say what they skipped; a file named outright must be of a
known kind.
"""

import atexit
import difflib
import functools
import glob
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from spt.corpus.rows import bad_row
from spt.errors import InputError

FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".txt")
COMPRESSIONS = (".gz", ".zst")
KNOWN = f"{', '.join(FORMATS)}, each but .parquet also with {' or '.join(COMPRESSIONS)}"


@dataclass(frozen=True)
class Input:
    """One file to read: `source` is what messages call it, `label` what ids start with."""

    path: Path
    source: str
    label: str
    format: str
    compression: str


@dataclass(frozen=True)
class Inputs:
    """The files a source means, and what was passed over on the way."""

    files: tuple[Input, ...]
    notes: tuple[str, ...]


def find_inputs(paths: Sequence[str]) -> Inputs:
    """Return the files that paths mean; folders and globs sorted, a list in its own order.

    Raises InputError where a path is missing or holds nothing to read, CorpusError (`unsupported`) for an unknown kind.
    """
    found: list[Input] = []
    notes: list[str] = []
    for path in paths:
        files, note = _expand(path)
        found += files
        notes += [note] if note else []
    unique: dict[str, Input] = {}
    for file in found:
        unique.setdefault(os.path.realpath(file.path), file)
    if len(unique) < len(found):
        notes.append(f"{len(found) - len(unique)} files are named more than once in {', '.join(paths)}; read once")
    return Inputs(_label(list(unique.values())), tuple(notes))


def split_name(name: str) -> tuple[str, str, str] | None:
    """Return (stem, format, compression) of a file's name, the stem without any known extension; None: unknown."""
    stem, last = os.path.splitext(name)
    compression = last.lower() if last.lower() in COMPRESSIONS else ""
    if compression:
        stem, last = os.path.splitext(stem)
    kind = last.lower()
    if kind not in FORMATS or (kind == ".parquet" and compression):
        return None
    while os.path.splitext(stem)[1].lower() in (*FORMATS, *COMPRESSIONS):
        stem = os.path.splitext(stem)[0]
    return stem, kind, compression


def _expand(text: str) -> tuple[list[Input], str]:
    """Return the files of one path, and a note on what was skipped."""
    if text == "-":
        return [Input(_spool_stdin(), "-", "stdin", ".jsonl", "")], ""
    path = Path(os.path.expanduser(text))  # pathlib's own fails on a name such as ~draft.txt
    if path.is_dir():
        return _choose(text, (file for file in path.rglob("*") if not _hidden(file.relative_to(path))))
    if path.exists():
        return [_named(path)], ""
    if glob.has_magic(text):
        return _choose(text, map(Path, glob.glob(str(path), recursive=True)))
    raise InputError(_missing(path))


def _hidden(relative: PurePath) -> bool:
    return any(part.startswith(".") for part in relative.parts)


def _choose(text: str, candidates: Iterable[Path]) -> tuple[list[Input], str]:
    files = sorted((file for file in candidates if file.is_file()), key=lambda file: file.as_posix())
    known = [file for file in files if split_name(file.name)]
    other = [file.name for file in files if not split_name(file.name)]
    if not known:
        holds = f"only {_few(other)}" if other else "no file"
        raise InputError(f"{text}: matches {holds}; give files of a known kind: {KNOWN}")
    note = f"{text}: skipped {len(other)} files of other kinds ({_few(other)})" if other else ""
    return [_named(file) for file in known], note


def _few(names: Sequence[str], limit: int = 5) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")


def _named(path: Path) -> Input:
    if not path.is_file():
        raise InputError(
            f"{path}: is a pipe, socket or device, which cannot be read twice; save it to a file, or give -"
        )
    parts = split_name(path.name)
    if parts is None:
        raise bad_row(
            str(path), 0, "unsupported", f"a file of this name is not read; rename or convert it to one of {KNOWN}"
        )
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: cannot be read; check its permissions")
    stem, kind, compression = parts
    return Input(path, str(path), stem, kind, compression)


def _missing(path: Path) -> str:
    """Return what to say of a path that is not there: its first missing part, and what stands beside it."""
    missing = path
    while not missing.parent.is_dir():
        missing = missing.parent
    beside = sorted(os.listdir(missing.parent))
    near = difflib.get_close_matches(missing.name, beside, n=3, cutoff=0.5)
    place = "here" if missing.parent == Path() else f"in {missing.parent}"
    hint = f"did you mean {' or '.join(near)}?" if near else f"there is {_few(beside) or 'nothing'}"
    what = "does not exist" if missing == path else f"does not exist, nor does {missing}"
    return f"{path}: {what}; {place} {hint}" if not near else f"{path}: {what}; {hint} ({place})"


def _label(files: Sequence[Input]) -> tuple[Input, ...]:
    """Return the inputs with labels that differ: the stem, or as much of the path before it as is needed."""
    groups: dict[str, list[Input]] = defaultdict(list)
    for file in files:
        groups[file.label].append(file)
    labels = {file: label for group in groups.values() for file, label in zip(group, _distinguish(group), strict=True)}
    return tuple(replace(file, label=labels[file]) for file in files)


def _distinguish(group: Sequence[Input]) -> list[str]:
    folders = [Path(os.path.abspath(file.path)).parent.parts for file in group]
    # Two kinds of file in one folder (train.csv, train.jsonl) share every path suffix; then the whole name decides.
    for names in ([file.label for file in group], [file.path.name for file in group]):
        for depth in range(max(map(len, folders)) + 1):
            labels = [
                "/".join((*parts[max(len(parts) - depth, 0) :], name))
                for parts, name in zip(folders, names, strict=True)
            ]
            if len(set(labels)) == len(group):
                return labels
    raise AssertionError("two inputs with one path")


@functools.cache
def _spool_stdin() -> Path:
    """Return a temporary file holding standard input, which can be read only once; deleted at exit."""
    with tempfile.NamedTemporaryFile(prefix="spt-stdin-", suffix=".jsonl", delete=False) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return Path(file.name)
