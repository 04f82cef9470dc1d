"""Shards: drafted one by one while the corpus is read, written as parts when all of it is known.

    .drafts/00000.parquet, then 00000.json       a draft: segmentations, other columns as JSON text; its counts
    part-00000.parquet                           the shard as later stages read it

In: the records of one shard and their segmentations. Out: files whose bytes depend on these alone. A draft exists when
its `.json` does, and serves a run whose shard holds the same records, cut in the same way (`of`, a hash of both): of a
corpus that is mended in one row, one shard is cut again. Trade-off: a shard is held in memory while it is written.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spt.artifact import dump_json, read_json, write_atomically
from spt.preprocess.columns import Kinds, dump_columns, find_kinds, make_column
from spt.preprocess.counts import Counts
from spt.records import Record, Segmentation

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("cuts", pa.list_(pa.int32()), nullable=False),
        pa.field("sentences", pa.list_(pa.int32()), nullable=False),
        pa.field("segmenter", pa.string(), nullable=False),
        pa.field("completion_start", pa.int32()),
    ]
)
"""The columns of every part; the record's other columns follow."""


@dataclass(frozen=True)
class Draft:
    """A drafted shard: its counts and the kinds of its other columns."""

    counts: Counts
    kinds: Kinds


DRAFTS = ".drafts"
"""The folder of drafts; its name is hidden because it says nothing of what the stage was asked for."""


def hash_shard(cut_by: Mapping[str, Any], records: Sequence[Record]) -> str:
    """Return a hash of what a draft is made of: how its records are cut, and all they hold."""
    digest = hashlib.sha256(dump_json(cut_by).encode())
    for record in records:
        parts = (record.id, record.text, str(record.completion_start), dump_columns(record.columns))
        digest.update("\0".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_draft(work: Path, index: int, of: str) -> Draft | None:
    """Return the draft of a shard, or None where it was not finished or is of something else."""
    path = work / f"{index:05d}.json"
    if not path.exists():
        return None
    value = read_json(path)
    if value.get("of") != of:
        return None
    # The order of columns is kept in a list: JSON objects are written with sorted keys.
    return Draft(Counts.from_json(value["counts"]), dict(value["columns"]))


def write_draft(
    work: Path, index: int, of: str, records: Sequence[Record], segmentations: Sequence[Segmentation]
) -> Draft:
    """Return the draft of a shard, written to disk."""
    (work / f"{index:05d}.json").unlink(missing_ok=True)  # before the rows it counts are replaced
    columns = pa.array([dump_columns(record.columns) for record in records], pa.string())
    table = _table(segmentations).append_column("columns", columns)
    write_atomically(work / f"{index:05d}.parquet", _parquet(table))
    draft = Draft(Counts.of(segmentations), find_kinds(record.columns for record in records))
    value = {"of": of, "counts": draft.counts.to_json(), "columns": list(draft.kinds.items())}
    write_atomically(work / f"{index:05d}.json", dump_json(value))
    return draft


def write_part(folder: Path, index: int, kinds: Kinds, names: Mapping[str, str]) -> None:
    """Write a shard's part from its draft; `names` maps the other columns to the names they get."""
    table = pq.read_table(folder / DRAFTS / f"{index:05d}.parquet")
    rows = [json.loads(text) for text in table["columns"].to_pylist()]
    table = table.drop_columns(["columns"])
    for name, found in kinds.items():
        table = table.append_column(names[name], make_column([row.get(name) for row in rows], found))
    write_atomically(folder / part_name(index), _parquet(table))


def part_name(index: int) -> str:
    """Return the file name of a part."""
    return f"part-{index:05d}.parquet"


def _table(segmentations: Sequence[Segmentation]) -> pa.Table:
    columns = {name: [getattr(row, name) for row in segmentations] for name in SCHEMA.names}
    return pa.table(columns, schema=SCHEMA)


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
