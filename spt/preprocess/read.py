"""`segmented/` → Segmentations: what later stages read.

In: a finished segmented folder. Out: its rows one by one, or memory-mapped for random access. Trade-off: every row is
checked each time, so that a damaged file is found here and not as a strange loss.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from spt.artifact import changed_keys, hash_file, read_json
from spt.config import Augment, Segment
from spt.errors import DamagedError, MissingError, StaleError
from spt.preprocess.shards import SCHEMA
from spt.records import Segmentation

if TYPE_CHECKING:
    import datasets


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a segmented folder.

    Raises MissingError where the folder is not finished.
    """
    if not (folder / "manifest.json").exists():
        what = "is unfinished" if (folder / "key.json").exists() else "holds no segmented data"
        raise MissingError(f"{folder} {what}. Make it with the experiment it belongs to:\n  spt preprocess CONFIG")
    return read_json(folder / "manifest.json")


def find_segmented(place: str) -> Path:
    """Return the segmented folder that `data.segmented` means: itself, or that of a run's folder."""
    given = Path(place)
    return given / "segmented" if (given / "segmented").is_dir() else given


def stored_entries(augment: Sequence[Augment]) -> list[dict[str, Any]]:
    """Return the entries of an augment section that segmented data depends on; an assistant has a key of its own."""
    unkept = {"reverse_statements": {"assistant", "extract"}, "identity_bridge": {"extract"}}
    return [entry.model_dump(mode="json", exclude=unkept) for entry in augment if entry.stored]


def check_segmented(folder: Path, settings: Segment, augment: Sequence[Augment]) -> None:
    """Return nothing; raise StaleError where a finished folder was cut or augmented in another way than asked for.

    A key that its version of spt did not know counts as unchanged.
    """
    key = read_manifest(folder)["key"]
    made, wanted = key["segment"], settings.stored
    known = wanted.keys() & made.keys()
    changes = changed_keys({key: made[key] for key in known}, {key: wanted[key] for key in known}, "segment.")
    changes += changed_keys({"augment": key.get("augment", [])}, {"augment": stored_entries(augment)})
    if changes:
        listed = "\n  ".join(changes)
        raise StaleError(
            f"{folder} was made in another way than this experiment says:\n  {listed}\n"
            "Give the experiment the same segment and augment sections, or make the data anew: without data.segmented, "
            "and with another --output or --force."
        )


def check_parts(folder: Path) -> dict[str, int]:
    """Return the parts of a finished folder and the rows of each.

    Raises DamagedError where a part's bytes are not those that were written.
    """
    parts = read_manifest(folder).get("parts")
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise _damaged(folder / "manifest.json", "names no parts with their rows and hashes")
    for name, part in parts.items():
        if not (folder / name).is_file() or hash_file(folder / name) != part["sha256"]:
            raise _damaged(folder / name, "missing, or changed since it was written")
    return {name: part["rows"] for name, part in parts.items()}


def read_segmented(folder: Path) -> Iterator[Segmentation]:
    """Yield the segmentations of a finished folder, in the order of the corpus.

    Raises MissingError where it is unfinished, DamagedError where a part is not what was written.
    """
    for name, count in check_parts(folder).items():
        read = 0
        for row in _rows(folder / name):
            yield _segmentation(folder / name, row)
            read += 1
        if read != count:
            raise _damaged(folder / name, f"{read} rows where {count} were written")


def load_segmented(folder: Path, cache_dir: Path) -> "datasets.Dataset":
    """Return a finished folder as a memory-mapped dataset, its Arrow files kept under `cache_dir`.

    Raises as `read_segmented` does.
    """
    import datasets

    for _ in read_segmented(folder):  # every part and row is checked
        pass
    paths = [str(folder / name) for name in read_manifest(folder)["parts"]]
    hidden = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        return datasets.Dataset.from_parquet(paths, cache_dir=str(cache_dir))
    finally:
        if not hidden:
            datasets.enable_progress_bars()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=SCHEMA.names):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, str(error)) from None


def _segmentation(path: Path, row: dict[str, Any]) -> Segmentation:
    try:
        return Segmentation(**{**row, "cuts": tuple(row["cuts"]), "sentences": tuple(row["sentences"])})
    except (TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(f"{path}: {what}. Make the folder again: spt preprocess CONFIG --force")
