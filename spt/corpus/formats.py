"""Rows of one file, by its format.

In: an input. Out: rows, each with its line; what cannot be read goes to `reject`. Trade-off: a row is delivered as soon
as it is whole, so a damaged file gives all rows before the damage, then one reject for the file.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spt.corpus.files import Input
from spt.corpus.json_rows import explain_utf8, read_json, read_json_lines
from spt.corpus.open import StreamError, open_bytes
from spt.corpus.rows import Reject, Row, bad_row

FIELD_LIMIT = 1 << 26
"""Characters in one CSV cell: far above any text, far below what an unclosed quote would swallow."""

PARQUET_BATCH = 1024
"""Rows turned into Python objects at once."""


def read_file(input_: Input, reject: Reject) -> Iterator[Row]:
    """Yield the rows of one file; if it cannot be read to its end, one reject for the file comes last."""
    last = 0
    try:
        for row in _read(input_, reject):
            last = row.line
            yield row
    except StreamError as error:
        reject(bad_row(input_.source, 0, error.reason, f"{error.detail}{_kept(last)}"))
    except (pa.ArrowException, OSError) as error:
        reject(bad_row(input_.source, 0, "damaged", f"cannot be read: {error}{_kept(last)}"))


def _kept(last: int) -> str:
    return f" (rows up to line {last} are kept)" if last else ""


def _read(input_: Input, reject: Reject) -> Iterator[Row]:
    if input_.format == ".parquet":
        yield from read_parquet(input_, reject)
        return
    with open_bytes(input_.path, input_.compression) as stream:
        yield from READERS[input_.format](input_, stream, reject)


def read_text_lines(input_: Input, stream: io.BufferedReader, reject: Reject) -> Iterator[Row]:
    """Yield a row with the one field `text` for each line that is not blank."""
    for number, data in enumerate(stream, 1):
        try:
            text = data.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raw = data.decode("utf-8", "surrogateescape")
            reject(bad_row(input_.source, number, "invalid_utf8", explain_utf8(error), raw))
            continue
        if text.strip():
            yield Row({"text": text}, input_.source, number, text, f"{input_.label}:{number}")


class _Lines:
    """The lines of a CSV file as text; remembers those that the current row took."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self.number = 0
        self.taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        data = next(self._stream)
        self.number += 1
        # Bytes that are not UTF-8 become surrogates, so that the row ends where it should and can be refused as a
        # whole.
        line = data.decode("utf-8-sig" if self.number == 1 else "utf-8", "surrogateescape")
        self.taken.append(line)
        return line


def read_csv(input_: Input, stream: io.BufferedReader, reject: Reject) -> Iterator[Row]:
    """Yield a row for each record after the header; every value is a string."""
    header: list[str] | None = None
    for cells, row in _csv_rows(input_, stream, reject):
        if header is None:
            header = cells
            repeated = sorted({name for name in header if header.count(name) > 1})
            if repeated:
                detail = f"{', '.join(map(repr, repeated))}: more than one column has this name; rename them"
                reject(row.error("repeated_field", detail))
                return
        elif len(cells) != len(header):
            detail = f"{len(cells)} cells where the header has {len(header)}; quote a cell that holds a separator"
            reject(row.error("wrong_column_count", detail))
        else:
            yield row._replace(values=dict(zip(header, cells, strict=True)))


def _csv_rows(input_: Input, stream: io.BufferedReader, reject: Reject) -> Iterator[tuple[list[str], Row]]:
    """Yield the cells of each row that is not blank, and the row they belong to, still without values."""
    # The limit is one for the process; Python's own, 131,072, is below a long text.
    csv.field_size_limit(FIELD_LIMIT)
    lines = _Lines(stream)
    reader = csv.reader(lines, delimiter="\t" if input_.format == ".tsv" else ",", strict=True)
    while True:
        lines.taken.clear()
        start = lines.number + 1
        problem, cells = "", []
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = str(error)
        raw = "".join(lines.taken)
        row = Row({}, input_.source, start, raw, f"{input_.label}:{start}")
        if problem:
            until = f" (lines {start} to {lines.number} are one row)" if lines.number > start else ""
            reject(row.error("invalid_csv", f'{problem}{until}; write a quote inside quotes as ""'))
        elif cells and not raw.isascii() and (wrong := _not_utf8(raw)):
            reject(row.error("invalid_utf8", wrong))
        elif cells:
            yield cells, row


def _not_utf8(raw: str) -> str:
    try:
        raw.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeDecodeError as error:
        return explain_utf8(error)
    return ""


def read_parquet(input_: Input, reject: Reject) -> Iterator[Row]:
    """Yield the rows of a Parquet file; values are what pyarrow makes of them (dates stay dates)."""
    with pq.ParquetFile(input_.path) as file:
        names = file.schema_arrow.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            detail = f"{', '.join(repeated)}: more than one column has this name; rename them"
            reject(bad_row(input_.source, 0, "repeated_field", detail))
            return
        number = 0
        for batch in file.iter_batches(batch_size=PARQUET_BATCH):
            for values in _batch_rows(batch):
                number += 1
                if isinstance(values, dict):
                    yield Row(values, input_.source, number, "", f"{input_.label}:{number}")
                else:
                    reason = "invalid_utf8" if isinstance(values, UnicodeDecodeError) else "damaged"
                    reject(bad_row(input_.source, number, reason, f"the row cannot be read: {values}"))


def _batch_rows(batch: Any) -> Iterator[dict[str, Any] | ValueError | OverflowError]:
    """Yield each row of a batch, or what Python said when it could not be made."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        # One value spoils the batch: look at each row. (Nothing was yielded: the list is made first.)
        for at in range(batch.num_rows):
            try:
                yield batch.slice(at, 1).to_pylist()[0]
            except (ValueError, OverflowError) as error:
                yield error


READERS: Mapping[str, Callable[[Input, io.BufferedReader, Reject], Iterator[Row]]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_text_lines,
}
