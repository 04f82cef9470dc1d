"""Rows of JSON: one object a line, or one array of objects.

In: a byte stream. Out: rows. JSON is parsed by the standard library alone, so that nothing is guessed: a text that
looks like a date stays text. Trade-off: an array is read through a moving window with `raw_decode`, which knows the
line of each object (streaming parsers do not tell it), but cannot go on after text that is not JSON.
"""

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from spt.corpus.files import Input
from spt.corpus.open import StreamError
from spt.corpus.rows import Reject, Row, bad_row

WINDOW = 1 << 16
"""Bytes read at once from a JSON document."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SOLID = re.compile(r"[^ \t\r\n]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


class _Decoder(json.JSONDecoder):
    """A JSON decoder that notes fields given twice, of which Python would keep the last."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        super().__init__(object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            names = [name for name, _ in pairs]
            self.repeated += sorted({name for name in names if names.count(name) > 1})
        return values


def explain(error: Exception) -> str:
    """Return why a text is not JSON, in one clause."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def read_json_lines(input_: Input, stream: io.BufferedReader, reject: Reject) -> Iterator[Row]:
    """Yield a row for each line; only a line feed ends a line."""
    decoder = _Decoder()
    for number, data in enumerate(stream, 1):
        data = data.removeprefix(codecs.BOM_UTF8) if number == 1 else data
        if not data.strip():
            continue
        try:
            text = data.decode("utf-8").rstrip("\r\n")
            value = decoder.decode(text)
        except UnicodeDecodeError as error:
            raw = data.decode("utf-8", "surrogateescape")
            reject(bad_row(input_.source, number, "invalid_utf8", explain_utf8(error), raw))
        except (ValueError, RecursionError) as error:
            reject(bad_row(input_.source, number, "invalid_json", explain(error), text))
        else:
            row = Row(value, input_.source, number, text, f"{input_.label}:{number}")
            yield from _checked(row, decoder, reject, "an array of objects is called .json")
        decoder.repeated.clear()


def explain_utf8(error: UnicodeDecodeError) -> str:
    """Return which byte of a row is not UTF-8, and the remedy."""
    byte = error.object[error.start]
    return f"byte 0x{byte:02x} at column {error.start + 1} is not UTF-8; save the file as UTF-8"


def _checked(row: Row, decoder: _Decoder, reject: Reject, hint: str) -> Iterator[Row]:
    """Yield the row if it is a sound object; else reject it."""
    value: Any = row.values
    if not isinstance(value, dict):
        reject(row.error("not_an_object", f"a row is an object, not {type_name(value)}; {hint}"))
    elif decoder.repeated:
        reject(row.error("repeated_field", f"{', '.join(decoder.repeated)}: given twice; keep one"))
    elif _SURROGATE_ESCAPE.search(row.raw) and not _encodable(row.values):
        reject(row.error("lone_surrogate", r"an escape such as \ud800 without its other half; mend or remove it"))
    else:
        yield row


def _encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def type_name(value: Any) -> str:
    """Return what JSON calls a value's type; other types by their own name."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


class _Window:
    """A JSON document of any size, seen through a window that moves forward."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self.line = 1
        self.decoder = _Decoder()
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape").decode
        self._text, self._at, self._ended = "", 0, False
        self._broken: StreamError | None = None

    def _grow(self) -> None:
        """Drop what was passed, and at least double what is left: parsing it again then costs no more than once."""
        parts = [self._text[self._at :]]
        size, wanted = len(parts[0]), max(WINDOW, 2 * (len(self._text) - self._at))
        while size < wanted and not self._ended:
            try:
                data = self._stream.read1(WINDOW)
            except StreamError as error:
                # What came before the damage is still to be read.
                self._broken, data = error, b""
            self._ended = not data
            parts.append(self._decode(data, final=self._ended))
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0

    def _pass(self, end: int) -> str:
        passed = self._text[self._at : end]
        self.line += passed.count("\n")
        self._at = end
        return passed

    def peek(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            found = _SOLID.search(self._text, self._at)
            self._pass(found.start() if found else len(self._text))
            if found:
                return found.group()
            if self._broken:
                raise self._broken
            if self._ended:
                return ""
            self._grow()

    def skip(self, character: str) -> None:
        """Pass one character; raises JSONDecodeError where another stands."""
        if self.peek() != character:
            raise json.JSONDecodeError(f"Expecting {character!r}", "", 0)
        self._pass(self._at + 1)

    def items(self, opening: str, closing: str) -> Iterator[int]:
        """Yield the line of each item of a list or object; the caller passes the item itself."""
        self.skip(opening)
        more = self.peek() != closing
        while more:
            yield self.line
            more = self.peek() == ","
            if more:
                self.skip(",")
                self.peek()
        self.skip(closing)

    def value(self) -> tuple[Any, str]:
        """Return the next value and its text."""
        while True:
            self.peek()
            self.decoder.repeated.clear()
            try:
                value, end = self.decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # Cut off by the window's edge? A string names its start, all else where it fails, at most a literal
                # early.
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 16
                if self._ended or not cut:
                    raise self._broken or error from None
            else:
                if end < len(self._text) or self._ended:
                    return value, self._pass(end)
            self._grow()


def read_json(input_: Input, stream: io.BufferedReader, reject: Reject) -> Iterator[Row]:
    """Yield a row for each object of an array, or of the array `data` of an object."""
    window = _Window(stream)
    try:
        if window.peek() == "{":
            yield from _read_data_of_object(input_, window, reject)
        else:
            yield from _read_array(input_, window, reject)
        if window.peek():
            raise json.JSONDecodeError("Extra data", "", 0)
    except (ValueError, RecursionError) as error:
        message = error.msg if isinstance(error, json.JSONDecodeError) else explain(error)
        detail = f"{message}; nothing after this line is read. One object a line? Then name it .jsonl"
        reject(bad_row(input_.source, window.line, "invalid_json", detail))


def _read_array(input_: Input, window: _Window, reject: Reject) -> Iterator[Row]:
    for number, line in enumerate(window.items("[", "]"), 1):
        value, raw = window.value()
        if _NOT_UTF8.search(raw):
            reject(
                bad_row(input_.source, line, "invalid_utf8", "bytes that are not UTF-8; save the file as UTF-8", raw)
            )
        else:
            row = Row(value, input_.source, line, raw, f"{input_.label}:{number}")
            yield from _checked(row, window.decoder, reject, "put the fields in {...}")


def _read_data_of_object(input_: Input, window: _Window, reject: Reject) -> Iterator[Row]:
    found = False
    for _ in window.items("{", "}"):
        name, _ = window.value()
        window.skip(":")
        if name == "data" and window.peek() == "[":
            found = True
            yield from _read_array(input_, window, reject)
        else:
            window.value()
    if not found:
        detail = 'no list under "data"; give an array of objects, {"data": [...]}, or one object a line named .jsonl'
        reject(bad_row(input_.source, 0, "unsupported", detail))
