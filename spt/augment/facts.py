"""A record's fields → sentences: what its columns and its text say, put into templates.

In: a record and the settings of an augmenter. Out: statements. Trade-off: a pattern's slot takes as little text as it
can, so a name that holds the pattern's own words is read too short; what a column says then refuses the pattern.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from spt.config.augment import SLOT, Statements
from spt.records import Record


class Statement(NamedTuple):
    """A sentence made from a record; `last` is the character offset where the last field in it starts."""

    text: str
    last: int


def find_fields(record: Record, settings: Statements, wanted: Iterable[str]) -> dict[str, str]:
    """Return the fields of a record by name: those of `wanted` that are columns, and what a pattern reads."""
    fields = {name: value for name in wanted if (value := _column(record, settings.fields.get(name, name)))}
    for pattern in settings.patterns:
        match = _compiled(pattern).fullmatch(record.text.strip())
        if match is not None:
            read = match.groupdict()
            if all(fields.get(name, value) == value for name, value in read.items()):
                return {**fields, **read}
    return fields


def slots(template: str) -> set[str]:
    """Return the names of the fields in a template."""
    return set(SLOT.findall(template))


def state(template: str, fields: Mapping[str, str]) -> Statement:
    """Return a template with its fields, its first letter a capital."""
    text, last = "", 0
    for index, part in enumerate(SLOT.split(template)):
        if index % 2:
            last = len(text)
        text += fields[part] if index % 2 else part
    first = text[:1].upper()
    # Some letters have two as their capital: offsets would move.
    return Statement(first + text[1:] if len(first) == 1 else text, last)


def _column(record: Record, names: str | tuple[str, ...]) -> str | None:
    for name in (names,) if isinstance(names, str) else names:
        value = record.columns.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    expression, known = "", set[str]()
    for index, part in enumerate(SLOT.split(pattern)):
        if not index % 2:
            expression += re.escape(part)
        else:
            expression += f"(?P={part})" if part in known else f"(?P<{part}>.+?)"
            known.add(part)
    return re.compile(expression, re.DOTALL)
