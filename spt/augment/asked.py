"""Each fact the other way round, in a language model's words: believed only where both names stand, in the new order.

In: records whose two names are known (columns, or a pattern). Out: statements, or the reason why a reply is none.
Trade-off: that the relation is kept is the model's word: a wrong sentence with both names in the new order passes.
"""

from collections.abc import Sequence
from typing import Any

from spt.assistant.item import Reply
from spt.assistant.write import Writer
from spt.augment.facts import Fact, Statement
from spt.augment.read import FactReader, writer_key
from spt.augment.stored import FIELDS, Made, names_of, order_problem, starts_of
from spt.config import Assistant
from spt.config.augment import ReverseStatements
from spt.records import Record

PROMPT = "statements"


class AskedReversal:
    """Each fact the other way round, by an assistant. Source: as `spt.augment.stored.Reversal`."""

    suffix, once, needs = "reversed", False, FIELDS

    def __init__(self, settings: ReverseStatements, assistant: Assistant) -> None:
        self.settings, self.repeat = settings, settings.repeat
        self._reader = FactReader(settings, lambda fact: len(names_of(fact, settings)) == 2)
        self._writer = Writer(assistant, PROMPT)

    def key(self) -> dict[str, Any]:
        """Return what the replies depend on: the model, and the prompt."""
        return {**writer_key(self._writer), **self._reader.key()}

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return the reversed statements of each record, one a fact."""
        facts = self._reader.read(records)
        rows = [[self._asked(record.text, one) for one in some] for record, some in zip(records, facts, strict=True)]
        requests = [_request(*one) for row in rows for one in row if not isinstance(one, str)]
        replies = iter(self._writer.write(requests))
        return [[one if isinstance(one, str) else _read(next(replies), *one) for one in row] for row in rows]

    def _asked(self, text: str, fact: Fact | str) -> tuple[str, list[str]] | str:
        """Return a text and the two names in it, or why nothing is asked about them."""
        if isinstance(fact, str):
            return fact
        names = names_of(fact, self.settings)
        if len(names) < 2:
            return "no_field"
        return (text, names) if min(starts_of(text, names)) >= 0 else "name_missing_in_text"


def _request(text: str, names: Sequence[str]) -> str:
    last = max(zip(starts_of(text, names), names, strict=True))[1]
    return f"{' '.join(text.split())} | begin with: {last}"


def _read(reply: Reply, text: str, names: Sequence[str]) -> Statement | str:
    if reply.text is None:
        return reply.failure or "empty"
    return order_problem(text, reply.text, names) or Statement(reply.text, max(starts_of(reply.text, names)))
