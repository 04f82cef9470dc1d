"""What corpus readers hand on: rows, and the reason where there is none.

    file ──▶ Row ──▶ Record
             └────▶ CorpusError ──▶ stop (raises) or Rejects (counts, keeps)

In: what one reader found. Out: a Row, or a CorpusError given to the caller's `reject`. Trade-off: the policy is one
callback, so a reader never knows whether the run goes on.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from spt.errors import CorpusError
from spt.progress import say

RAW_LIMIT = 2_000
"""Characters of a bad row that are kept."""

REASONS: Mapping[str, str] = {
    "invalid_utf8": "bytes that are not UTF-8",
    "invalid_json": "text that is not JSON",
    "not_an_object": "JSON that is no object",
    "repeated_field": "a field given twice in one row or header",
    "lone_surrogate": "half of a surrogate pair, which no text file can hold",
    "invalid_csv": "quotes or line ends that are not CSV",
    "wrong_column_count": "more or fewer cells than the header",
    "missing_field": "a row without the field that holds its text or id",
    "wrong_type": "a text that is not a string, or an id that is neither string nor integer",
    "empty_text": "a text of white space only",
    "duplicate_id": "an id that an earlier record has",
    "truncated_gzip": "a .gz file that ends too early",
    "truncated_zstd": "a .zst file that ends too early",
    "damaged": "a file that cannot be read to its end",
    "unsupported": "a kind of file that is not read",
}
"""Every reason of a CorpusError, with its meaning."""


class Row(NamedTuple):
    """One row of an input, its fields untouched.

    `line` counts from 1: the line of the file where the row starts, or the row's number in Parquet and Hub datasets.
    `place` is unique among the inputs, and the id of a record that has none: `<file stem>:<line>`, in a JSON array,
    which may stand on one line, `<file stem>:<number>`.
    """

    values: dict[str, Any]
    source: str
    line: int
    raw: str
    place: str

    def error(self, reason: str, detail: str) -> CorpusError:
        """Return why this row cannot be used."""
        # Rows of Parquet have no text of their own; it is made only for a row that is refused.
        raw = self.raw or json.dumps(self.values, ensure_ascii=False, default=str)
        return bad_row(self.source, self.line, reason, detail, raw)


Reject = Callable[[CorpusError], None]
"""What is done with a row that cannot be used: raise, or take note and return."""


def bad_row(source: str, line: int, reason: str, detail: str, raw: str = "") -> CorpusError:
    """Return a CorpusError, `raw` cut to RAW_LIMIT characters and fit to be written as UTF-8."""
    assert reason in REASONS, reason
    kept = raw if len(raw) <= RAW_LIMIT else raw[:RAW_LIMIT] + "…"
    return CorpusError(source, line, reason, detail, escape_bytes(kept.strip("\r\n")))


def escape_bytes(text: str) -> str:
    r"""Return text decoded with `surrogateescape`, its bytes that were not UTF-8 written out: `\xe9`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def stop(error: CorpusError) -> NoReturn:
    """Raise the error: the policy `on_error: stop`."""
    raise error


class Rejects:
    """The policy `on_error: reject`: bad rows are counted by reason and kept until they are taken.

    The first row of each reason is shown; the others only counted.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._rows: list[dict[str, Any]] = []

    def __call__(self, error: CorpusError) -> None:
        """Take note of one bad row."""
        if not self.counts[error.reason]:
            say(f"rejected: {error}")
        self.counts[error.reason] += 1
        self._rows.append({"source": error.source, "line": error.line, "reason": error.reason, "raw": error.raw})

    def take(self) -> list[dict[str, Any]]:
        """Return the rows of `rejects.jsonl` since the last call, and forget them: memory stays flat."""
        rows, self._rows = self._rows, []
        return rows
