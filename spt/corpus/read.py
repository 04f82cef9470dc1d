"""Records of a corpus: the first row of the picture.

    file, glob, folder, -, Hub dataset ──▶ Row ──▶ Record

In: a Source. Out: records in the order of their inputs, one at a time. Trade-off: every id is looked up among all
before it, which costs a little time and no memory, so that two records can never share the orders drawn for an id.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from spt.artifact import hash_file
from spt.config import Fields, Source
from spt.corpus.files import find_inputs
from spt.corpus.formats import read_file
from spt.corpus.hub import hub_key, read_hub_rows
from spt.corpus.json_rows import type_name
from spt.corpus.rows import Reject, Row
from spt.corpus.seen import SeenIds
from spt.errors import CorpusError
from spt.progress import say
from spt.records import Record


def read_rows(source: Source, reject: Reject) -> Iterator[Row]:
    """Yield the rows of a source as they stand, whatever their fields.

    Raises InputError where there is nothing to read; a row that cannot be read goes to `reject`.
    """
    if source.hub is not None:
        yield from read_hub_rows(source, reject)
        return
    inputs = find_inputs(source.paths)
    for note in inputs.notes:
        say(note)
    for input_ in inputs.files:
        yield from read_file(input_, reject)


def read_records(source: Source, *, reject: Reject, limit: int | None = None) -> Iterator[Record]:
    """Yield at most `limit` records; what cannot become one goes to `reject` (`stop`, or a `Rejects`).

    A record's text is the field `source.fields.text`, or `prompt` and `completion` joined exactly as given. Where
    neither is configured, a row without `text` that has `prompt` and `completion` is read by these. Its id is the field
    `source.fields.id`, an integer as text; a row without one (absent, null or empty) gets its place, `<file
    stem>:<line>`. Of records with equal ids the first is kept.
    """
    count = 0
    with SeenIds() as seen:
        for row in read_rows(source, reject):
            try:
                record = make_record(row, source)
                first = seen.add(record.id, record.source, record.line)
                if first is not None:
                    detail = (
                        f"{record.id!r} was first at {first[0]}:{first[1]}, which is kept; give each row its own id"
                    )
                    raise row.error("duplicate_id", detail)
            except CorpusError as error:
                reject(error)
                continue
            yield record
            count += 1
            if count == limit:
                return


def make_record(row: Row, source: Source) -> Record:
    """Return the record of one row of a source.

    Raises CorpusError: `missing_field`, `wrong_type` or `empty_text`.
    """
    fields = source.fields
    names = _text_fields(row, fields)
    parts = [_text(row, name, source.place) for name in names]
    text = "".join(parts)
    if not text or text.isspace():
        raise row.error("empty_text", f"{' + '.join(names)}: white space only; remove the row or fill it")
    taken = {*names, fields.id}
    return Record(
        id=_record_id(row, fields.id, source.place),
        text=text,
        source=row.source,
        line=row.line,
        completion_start=len(parts[0]) if len(parts) == 2 else None,
        columns={name: value for name, value in row.values.items() if name not in taken},
    )


def _text_fields(row: Row, fields: Fields) -> tuple[str, ...]:
    configured = fields.text is not None or fields.prompt is not None
    if not configured and "text" not in row.values and {"prompt", "completion"} <= row.values.keys():
        return ("prompt", "completion")
    return fields.text_fields


def _text(row: Row, name: str, place: str) -> str:
    if name not in row.values:
        raise row.error("missing_field", _missing(row, name, place))
    value = row.values[name]
    if not isinstance(value, str):
        shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:60] + "…"
        raise row.error("wrong_type", f"{name} is {type_name(value)} ({shown}), not a string; write it as one")
    return value


def _missing(row: Row, name: str, place: str) -> str:
    """Return which fields the row has, nearest first, and how to map one of them."""
    if not row.values:
        return f"no field {name}; the row has no fields"

    def distance(other: str) -> tuple[bool, float]:
        return not isinstance(row.values[other], str), -SequenceMatcher(None, name.lower(), other.lower()).ratio()

    near = sorted(row.values, key=distance)
    return f"no field {name}; the row has {', '.join(near)}. Map the one meant: {place}.fields.text: {near[0]}"


def _record_id(row: Row, name: str, place: str) -> str:
    value = row.values.get(name)
    if value is None or value == "":
        if name != "id" and name not in row.values:
            has = ", ".join(row.values)
            raise row.error("missing_field", f"no field {name}, which {place}.fields.id names; the row has {has}")
        return row.place
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise row.error("wrong_type", f"{name} is {type_name(value)} ({value!r}); an id is a string or an integer")
    return str(value)


def input_key(source: Source) -> dict[str, Any]:
    """Return what the inputs are, for a stage's key: names and contents, order and field mapping, but no place.

    A Hub dataset counts by id, name, split, data files and revision: without a revision its changes go unseen.
    """
    fields = source.fields.model_dump()
    if source.hub is not None:
        return {**hub_key(source), "fields": fields}
    inputs = find_inputs(source.paths).files
    # Names count because ids are made of them, order because of equal ids the first is kept.
    names = [f"{file.label}{file.format}{file.compression}" for file in inputs]
    hashes = [hash_file(file.path) for file in inputs]
    return {"files": dict(zip(names, hashes, strict=True)), "order": names, "fields": fields}
