"""Records → their facts: from columns and patterns, and where these do not do, from an assistant.

In: records, and what an augmenter needs of a fact. Out: for each record its facts, and the reasons of those that an
assistant could not give. Trade-off: an assistant that finds nothing leaves the record's own fact behind no reason: what
is counted is why the assistant failed.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spt.artifact import dump_json
from spt.augment.facts import Fact, find_facts
from spt.config.augment import Statements
from spt.records import Record

if TYPE_CHECKING:
    from spt.assistant.write import Writer


class FactReader:
    """Reads the facts of records. `enough` says whether a fact has the fields that are needed."""

    def __init__(self, settings: Statements, enough: Callable[[Fact], bool]) -> None:
        self.settings, self.enough = settings, enough

    def key(self) -> dict[str, Any]:
        """Return what the facts depend on besides records, settings and code."""
        return {} if self.settings.extract is None else {"extract": writer_key(self._writer)}

    def read(self, records: Sequence[Record]) -> list[list[Fact | str]]:
        """Return the facts of each record, and the reasons of what an assistant said and is no fact."""
        known = [find_facts(record, self.settings) for record in records]
        found: list[list[Fact | str]] = [[*facts] for facts in known]
        lacking = [row for row, facts in enumerate(known) if not any(map(self.enough, facts))]
        if self.settings.extract is None or not lacking:
            return found
        from spt.augment.extract import extract

        for row, said in zip(lacking, extract(self._writer, [records[row].text for row in lacking]), strict=True):
            own = Fact(records[row].columns, self.settings.fields, {})
            found[row] = [one if isinstance(one, str) else own._replace(read=one) for one in said]
        return found

    @cached_property
    def _writer(self) -> "Writer":
        # A language model's libraries take seconds to import.
        from spt.assistant.write import Writer
        from spt.augment.extract import PROMPT

        assert self.settings.extract is not None
        return Writer(self.settings.extract, PROMPT)


def writer_key(writer: "Writer") -> dict[str, Any]:
    """Return what the replies of a writer depend on: the model, and the prompt."""
    prompt = hashlib.sha256(dump_json(writer.prompt.model_dump()).encode()).hexdigest()
    return {**writer.backend.key(), "prompt": prompt}
