"""Each fact the other way round, in a language model's words: believed only where both names stand, in the new order.

In: records whose two names are known (columns, or a pattern). Out: statements, or the reason why a reply is none.
Trade-off: that the relation is kept is the model's word: a wrong sentence with both names in the new order passes.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from spt.artifact import dump_json
from spt.assistant.item import Reply
from spt.assistant.write import Writer
from spt.augment.facts import Statement, find_fields
from spt.augment.stored import Made, order_problem
from spt.config import Assistant
from spt.config.augment import ReverseStatements
from spt.records import Record

PROMPT = "statements"


class AskedReversal:
    """Each fact the other way round, by an assistant. Source: as `spt.augment.stored.Reversal`."""

    suffix, once = "reversed", False

    def __init__(self, settings: ReverseStatements, assistant: Assistant) -> None:
        self.settings, self.repeat = settings, settings.repeat
        self._writer = Writer(assistant, PROMPT)

    def key(self) -> dict[str, Any]:
        """Return what the replies depend on: the model, and the prompt."""
        prompt = hashlib.sha256(dump_json(self._writer.prompt.model_dump()).encode()).hexdigest()
        return {**self._writer.backend.key(), "prompt": prompt}

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return the reversed statement of each record."""
        fields = [find_fields(record, self.settings, self.settings.between) for record in records]
        names = [[found[name] for name in self.settings.between if name in found] for found in fields]
        problems = [_unasked(record.text, two) for record, two in zip(records, names, strict=True)]
        rows = list(zip(records, names, problems, strict=True))
        replies = iter(self._writer.write([_request(record.text, two) for record, two, problem in rows if not problem]))
        return [[problem or _read(record.text, next(replies), two)] for record, two, problem in rows]


def _unasked(text: str, names: Sequence[str]) -> str | None:
    """Return why nothing is asked about a record, or None."""
    if len(names) < 2:
        return "no_field"
    return None if min(_places(text, names)) >= 0 else "name_missing_in_text"


def _read(text: str, reply: Reply, names: Sequence[str]) -> Statement | str:
    if reply.text is None:
        return reply.failure or "empty"
    problem = order_problem(text, reply.text, names)
    return problem or Statement(reply.text, max(_places(reply.text, names)))


def _request(text: str, names: Sequence[str]) -> str:
    places = _places(text, names)
    return f"{' '.join(text.split())} | begin with: {names[places.index(max(places))]}"


def _places(text: str, names: Sequence[str]) -> list[int]:
    return [text.casefold().find(name.casefold()) for name in names]
