"""Augmenters whose records are stored: records → for each, what else is learned besides it, or why nothing is.

In: records of a corpus, some at a time. Out: for each its statements, and the reasons of those that could not be made.
Trade-off: an augmenter sees some records at a time, never the corpus, so that memory stays flat.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from spt.augment.facts import Fact, Statement, find_name, slots, state
from spt.augment.read import FactReader
from spt.config.augment import IdentityBridge, Repeat, ReverseStatements
from spt.errors import InputError
from spt.records import Record

Made = list[Statement | str]
"""Statements, and the reasons of those that could not be made (identifiers)."""


class Augmenter(Protocol):
    """Makes statements from records.

    `suffix`: of the ids of what it makes. `once`: of equal statements one is made for a whole corpus. `repeat`: how
    often each is learned an epoch. `needs`: what a record must have, for an error.
    """

    suffix: str
    once: bool
    repeat: int
    needs: str

    def key(self) -> dict[str, Any]:
        """Return what its statements depend on besides records, settings and code."""
        ...

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return what is made from each record."""
        ...


FIELDS = (
    "fields: columns of the corpus, named in templates or mapped in fields, patterns that its texts fit, or an "
    "assistant (extract) that finds them"
)
"""What augmenters need that state facts."""


class Repeater:
    """The record itself, once less than it is to be learned an epoch."""

    suffix, once, repeat, needs = "copy", False, 1, "nothing"

    def __init__(self, settings: Repeat) -> None:
        self.settings = settings

    def key(self) -> dict[str, Any]:
        """Return {}: settings and code say all."""
        return {}

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return the copies of each record. Raises InputError for a column that holds no whole number from 1."""
        return [
            [Statement(record.text, record.completion_start or 0)] * (self._times(record) - 1) for record in records
        ]

    def _times(self, record: Record) -> int:
        if self.settings.times is not None:
            return self.settings.times
        times = record.columns.get(str(self.settings.column))
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            raise InputError(
                f"{record.source}:{record.line}: augment.repeat: column {self.settings.column!r} holds {times!r}; it "
                "must hold how often the record is learned an epoch, a whole number from 1"
            )
        return times


class Bridge:
    """The identity bridge: sentences "A is A" beside the facts "A is B", so that B leads to A.

    Source: Ma et al. 2602.02470, whose example is "The name of Alice is Alice". Established from its abstract: the form
    A → A, added to forward facts alone. Not established: its templates beyond that one, whether B has a bridge too, and
    how facts and bridges are weighted; `templates` and `repeat` are there to try.
    """

    suffix, once, needs = "bridge", True, FIELDS

    def __init__(self, settings: IdentityBridge) -> None:
        self.settings, self.repeat = settings, settings.repeat
        self._reader = FactReader(settings, lambda fact: bool(self._stated(fact)))

    def key(self) -> dict[str, Any]:
        """Return what an assistant's facts depend on, where one is asked."""
        return self._reader.key()

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return the bridges of each record: of every fact, by every template whose fields it has."""
        return [self._bridges(facts) for facts in self._reader.read(records)]

    def _bridges(self, facts: Sequence[Fact | str]) -> Made:
        made: Made = []
        for fact in facts:
            made += [fact] if isinstance(fact, str) else self._stated(fact) or ["no_field"]
        return made

    def _stated(self, fact: Fact) -> list[Statement]:
        texts = ((text, fact.fields(slots(text))) for text in self.settings.templates)
        return [state(text, fields) for text, fields in texts if slots(text) <= fields.keys()]


class Reversal:
    """Each fact the other way round, by a template.

    Source: PORE ("Rethinking the Reversal Curse of LLMs", EMNLP 2024): statements in both orders of their two entities.
    Not established: its wordings, and the questions that it learns beside statements.
    """

    suffix, once, needs = "reversed", False, FIELDS

    def __init__(self, settings: ReverseStatements) -> None:
        self.settings, self.repeat = settings, settings.repeat
        self._reader = FactReader(settings, lambda fact: len(names_of(fact, settings)) == 2)

    def key(self) -> dict[str, Any]:
        """Return what an assistant's facts depend on, where one is asked."""
        return self._reader.key()

    def make(self, records: Sequence[Record]) -> list[Made]:
        """Return the reversed statements of each record: of every fact, by the templates in which its names swap."""
        rows = zip(records, self._reader.read(records), strict=True)
        return [[one for fact in facts for one in self._reversals(record.text, fact)] for record, facts in rows]

    def _reversals(self, text: str, fact: Fact | str) -> Made:
        if isinstance(fact, str):
            return [fact]
        own = None if self.settings.template_column is None else fact.get(self.settings.template_column)
        templates = self.settings.templates if own is None else (own,)
        if not templates:
            return ["no_template"]
        fields = fact.fields({*self.settings.between}.union(*map(slots, templates)))
        stated = [state(one, fields) for one in templates if slots(one) | {*self.settings.between} <= fields.keys()]
        if not stated:
            return ["no_field"]
        names = names_of(fact, self.settings)
        problems = [order_problem(text, one.text, names) for one in stated]
        swapped: Made = [one for one, problem in zip(stated, problems, strict=True) if problem is None]
        return swapped or [str(problems[0])]


def names_of(fact: Fact, settings: ReverseStatements) -> list[str]:
    """Return the names that change places: two, or fewer where the fact has not both."""
    return list(fact.fields(settings.between).values())


def order_problem(text: str, reverse: str, names: Sequence[str]) -> str | None:
    """Return None where two names stand in both texts, in the opposite order; else what is wrong.

    The reasons: `name_missing_in_text`, `name_missing`, `same_order`. Case is ignored: sentences begin with a capital.
    """
    first, second = (starts_of(one, names) for one in (text, reverse))
    if -1 in first:
        return "name_missing_in_text"
    if -1 in second:
        return "name_missing"
    swapped = (first[0] - first[1]) * (second[0] - second[1]) < 0
    return None if swapped else "same_order"


def starts_of(text: str, names: Sequence[str]) -> list[int]:
    """Return where each name first stands in a text; -1 where it does not."""
    places = (find_name(text, name) for name in names)
    return [-1 if place is None else place[0] for place in places]
