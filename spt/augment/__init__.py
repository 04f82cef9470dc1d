"""What is learned besides the records as they are: more records, and contexts drawn anew each epoch.

    Record ──▶ Record, Record, ...     stored with the others      Ordering ──▶ Ordering with a context

In: records of a corpus, or an ordering; the entries of the `augment` section. Out: the same, and what the entries add.
Trade-off: an augmenter sees some records at a time, so that one that can make nothing is found at the first of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

from spt.augment.facts import Statement
from spt.augment.masked_context import masked_context
from spt.augment.sentences import Splitter
from spt.augment.stored import Augmenter, Bridge, Made, Repeater, Reversal
from spt.config import Augment
from spt.config.augment import ReverseStatements
from spt.corpus.seen import SeenIds
from spt.errors import InputError
from spt.records import Ordering, Record

CHUNK = 500
"""Records that an augmenter sees at a time."""


def _reversal(settings: ReverseStatements) -> Augmenter:
    if settings.assistant is None:
        return Reversal(settings)
    from spt.augment.asked import AskedReversal  # a language model's libraries take seconds to import

    return AskedReversal(settings, settings.assistant)


STORED: Mapping[str, Callable[[Any], Augmenter]] = {
    "repeat": Repeater,
    "sentences": Splitter,
    "identity_bridge": Bridge,
    "reverse_statements": _reversal,
}
"""What makes the records of an entry."""

DRAWN: Mapping[str, Callable[[Ordering, Any, Random], Ordering]] = {"masked_context": masked_context}
"""What is drawn anew each epoch for an entry."""


def make_augmenters(entries: Iterable[Augment]) -> dict[str, Augmenter]:
    """Return the augmenters of stored entries, by name and number where a name comes twice."""
    augmenters: dict[str, Augmenter] = {}
    for entry in entries:
        if entry.stored:
            count = sum(name.split("#")[0] == entry.name for name in augmenters)
            augmenters[f"{entry.name}#{count + 1}" if count else entry.name] = STORED[entry.name](entry.settings)
    return augmenters


def augmented(records: Iterable[Record], augmenters: Mapping[str, Augmenter], counts: Counter[str]) -> Iterator[Record]:
    """Yield every record, behind it what is made of it, with ids `<id>/<suffix>-<number>`.

    Counts what was made and, as `<augmenter>: <reason>`, what could not be. Raises InputError where an augmenter makes
    nothing of the first records, or an id that the corpus has.
    """
    if not augmenters:
        yield from records
        return
    rest = iter(records)
    with SeenIds() as ids, SeenIds() as texts:
        while chunk := list(islice(rest, CHUNK)):
            made = {name: augmenter.make(chunk) for name, augmenter in augmenters.items()}
            for name, rows in made.items():
                if not counts[name]:
                    _check_some(name, rows, augmenters[name].needs)
            for position, record in enumerate(chunk):
                yield _new(record, ids)
                for name, augmenter in augmenters.items():
                    for statement in _kept(record, name, augmenter, made[name][position], texts, counts):
                        yield _new(statement, ids)


def draw_context(ordering: Ordering, entries: Sequence[Augment], generator: Random) -> Ordering:
    """Return an ordering with what the entries draw for it."""
    for entry in entries:
        if not entry.stored:
            ordering = DRAWN[entry.name](ordering, entry.settings, generator)
    return ordering


def _kept(
    record: Record, name: str, augmenter: Augmenter, made: Made, texts: SeenIds, counts: Counter[str]
) -> Iterator[Record]:
    number = 0
    for one in made:
        if isinstance(one, str):
            counts[f"{name}: {one}"] += 1
        elif augmenter.once and texts.add(f"{name} {one.text}", record.source, record.line) is not None:
            counts[f"{name}: made_before"] += 1
        else:
            for _ in range(augmenter.repeat):
                number += 1
                counts[name] += 1
                yield _record(record, f"{record.id}/{augmenter.suffix}-{number}", one)


def _record(record: Record, id_: str, statement: Statement) -> Record:
    # Where only completions are learned, that of a statement is its last field.
    start = None if record.completion_start is None else statement.last
    return replace(record, id=id_, text=statement.text, completion_start=start)


def _new(record: Record, ids: SeenIds) -> Record:
    if ids.add(record.id, record.source, record.line) is not None:
        raise InputError(
            f"{record.source}:{record.line}: two records have the id {record.id!r}, one of them made by augment; give "
            "the corpus other ids, or two augment entries of one kind as one"
        )
    return record


def _check_some(name: str, rows: Sequence[Made], needs: str) -> None:
    """Refuse an augmenter all of whose first records fail: its settings are not the corpus's."""
    reasons = Counter(one for row in rows for one in row if isinstance(one, str))
    if reasons and not any(isinstance(one, Statement) for row in rows for one in row):
        listed = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
        raise InputError(f"augment.{name}: nothing could be made of {len(rows)} records ({listed}); it needs {needs}")
