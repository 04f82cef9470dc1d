"""A record's facts → sentences: what its columns and its text say, put into templates.

    {"text": ..., "subject": "Ann Lee", "object": "The Sea"}                 one fact
    {"text": ..., "facts": [{"subject": ..., "object": ...}, {...}]}         several, each beside the record's columns

In: a record and the settings of an augmenter. Out: facts, and statements of them. Trade-off: a pattern's slot takes as
little text as it can, so a name that holds the pattern's own words is read too short; what a column says then refuses
the pattern.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from spt.config.augment import SLOT, Statements
from spt.config.values import OneOrMore
from spt.records import Record, writes_no_spaces


class Statement(NamedTuple):
    """A sentence made from a record; `last` is the character offset where the last field in it starts."""

    text: str
    last: int


class Fact(NamedTuple):
    """Something a record says: columns, which of them a field is called (`names`), and the fields `read` off a text."""

    columns: Mapping[str, Any]
    names: Mapping[str, OneOrMore]
    read: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """Return a field, or None."""
        return self.read.get(name) or _column(self.columns, self.names.get(name, name))

    def fields(self, names: Iterable[str]) -> dict[str, str]:
        """Return those of several fields that it has."""
        return {name: value for name in names if (value := self.get(name))}


def find_facts(record: Record, settings: Statements) -> list[Fact]:
    """Return the facts in the record's column `settings.facts`, or its own as one, with what a pattern reads."""
    listed = record.columns.get(settings.facts)
    if isinstance(listed, list) and listed and all(isinstance(one, Mapping) for one in listed):
        return [Fact({**record.columns, **one}, settings.fields, {}) for one in listed]
    own = Fact(record.columns, settings.fields, {})
    for pattern in settings.patterns:
        expression, names = _compiled(pattern)
        match = expression.fullmatch(record.text.strip())
        read = {} if match is None else dict(zip(names, match.groups(), strict=True))
        if match is not None and all(own.get(name) in (None, value) for name, value in read.items()):
            return [own._replace(read=read)]
    return [own]


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


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Return where a name first stands in a text, case ignored: as whole words, else inside one; or None."""
    places = [match.span() for match in re.finditer(re.escape(name), text, re.IGNORECASE)]
    whole = (place for place in places if not any(_is_inside_word(text, at) for at in place))
    return next(whole, places[0] if places else None)


def _is_inside_word(text: str, at: int) -> bool:
    beside = text[max(at - 1, 0) : at + 1]
    return 0 < at < len(text) and beside.isalnum() and not any(map(writes_no_spaces, beside))


def _column(columns: Mapping[str, Any], names: OneOrMore) -> str | None:
    for name in (names,) if isinstance(names, str) else names:
        value = columns.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return None


@cache
def _compiled(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return an expression for a pattern, and the names of its groups: a field's may be none that `re` allows."""
    expression, names = "", list[str]()
    for index, part in enumerate(SLOT.split(pattern)):
        if not index % 2:
            expression += re.escape(part)
        elif part in names:
            expression += f"(?P=field{names.index(part)})"
        else:
            expression += f"(?P<field{len(names)}>.+?)"
            names.append(part)
    return re.compile(expression, re.DOTALL), tuple(names)
