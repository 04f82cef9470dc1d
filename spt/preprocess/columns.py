"""A record's other columns → columns of a Parquet table, whatever they hold.

In: the values of one column over a whole corpus. Out: a real column where all values are of one scalar type (null
aside); otherwise a string column of JSON texts, one a value, so that a list, an object, or a number among words loses
nothing. A value that JSON does not know (a date, bytes) counts as its text. Trade-off: lists are JSON texts even where
all are alike.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

Kinds = Mapping[str, Sequence[str]]
"""The kinds of value each column holds over a corpus or shard; none: only nulls."""

_TYPES = {"bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64(), "string": pa.string()}


def find_kinds(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the kinds of value in each column, columns in the order they appear."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).update(() if value is None else (_kind(value),))
    return {name: sorted(found) for name, found in kinds.items()}


def join_kinds(shards: Iterable[Kinds]) -> dict[str, list[str]]:
    """Return the kinds of several shards together."""
    joined: dict[str, set[str]] = {}
    for shard in shards:
        for name, kinds in shard.items():
            joined.setdefault(name, set()).update(kinds)
    return {name: sorted(found) for name, found in joined.items()}


def describe(kinds: Kinds) -> dict[str, str]:
    """Return how each column is stored: `bool`, `int64`, `double`, `string`, or `json`."""
    return {name: _stored_as(found) for name, found in kinds.items()}


def rename(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Return the name each column gets: its own, or `columns.NAME` where ours has that name."""
    used = {*names, *taken}
    renamed: dict[str, str] = {}
    for name in names:
        new = name
        while new in set(taken) or (new != name and new in used):
            new = f"columns.{new}"
        used.add(new)
        renamed[name] = new
    return renamed


def make_column(values: Sequence[Any], kinds: Sequence[str]) -> pa.Array:
    """Return one column of a shard, stored by the kinds of the whole corpus."""
    stored = _stored_as(kinds)
    if stored == "json":
        return pa.array(
            [None if value is None else json.dumps(value, ensure_ascii=False) for value in values], pa.string()
        )
    return pa.array(values, _TYPES[stored])


def dump_columns(columns: Mapping[str, Any]) -> str:
    """Return the columns of one record as JSON text, plain ASCII."""
    return json.dumps(dict(columns), default=str)


def _stored_as(kinds: Sequence[str]) -> str:
    return (kinds[0] if kinds else "string") if len(kinds) < 2 else "json"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if -(2**63) <= value < 2**63 else "json"
    if isinstance(value, float):
        return "double"
    if isinstance(value, (list, tuple, dict)):
        return "json"
    return "string"
