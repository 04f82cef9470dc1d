"""Rows of a dataset of the Hugging Face Hub, streamed.

In: a source with `hub` (an id, or a local folder of data files). Out: rows, numbered from 0 in their ids as in the
dataset itself. Trade-off: `datasets` decides the types here (it makes timestamps of ISO dates); files that must be
taken literally are better downloaded and given as `path`.
"""

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spt.artifact import hash_file
from spt.config import Source
from spt.corpus.rows import Reject, Row, bad_row
from spt.errors import InputError


def read_hub_rows(source: Source, reject: Reject) -> Iterator[Row]:
    """Yield the rows of one split.

    Raises InputError where the dataset, its configuration or its split cannot be opened.
    """
    where = f"{source.hub}/{source.split}"
    rows = iter(_open(source))
    index = 0
    while True:
        try:
            values = next(rows)
        except StopIteration:
            return
        except Exception as error:  # the loader of any format may raise its own kind
            kept = f" (rows up to {index} are kept)" if index else ""
            reject(bad_row(where, 0, "damaged", f"datasets cannot read on: {_first_line(error)}{kept}"))
            return
        yield Row(dict(values), where, index + 1, "", f"{source.split}:{index}")
        index += 1


def _open(source: Source) -> Any:
    # Imported here because it takes seconds, and files do not need it.
    from datasets import load_dataset

    files = list(source.data_files) if isinstance(source.data_files, tuple) else source.data_files
    try:
        return load_dataset(
            source.hub, source.name, split=source.split, data_files=files, revision=source.revision, streaming=True
        )
    except Exception as error:  # datasets, huggingface_hub and fsspec raise kinds without a common base
        raise InputError(
            f"hub dataset {source.hub!r} (name {source.name}, split {source.split}): {_first_line(error)}; "
            "check id, name and split, log in for a gated one (hf auth login), or download it and give path instead"
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def hub_key(source: Source) -> dict[str, Any]:
    """Return what identifies a dataset; local data files count by their contents, not by where they lie."""
    key = {name: getattr(source, name) for name in ("hub", "name", "split", "data_files", "revision")}
    files = _local_files(source)
    if Path(str(source.hub)).is_dir():
        key["hub"] = Path(str(source.hub)).resolve().name
    if files:
        key["data_files"] = sorted(hash_file(file) for file in files)
    return key


def _local_files(source: Source) -> list[Path]:
    folder = Path(str(source.hub))
    base = folder if folder.is_dir() else Path()
    named = (source.data_files,) if isinstance(source.data_files, str) else source.data_files or ()
    patterns = named or (("**/*",) if folder.is_dir() else ())
    found = [glob.glob(str(base / pattern), recursive=True) for pattern in patterns]
    return [Path(name) for names in found for name in names if Path(name).is_file()]
