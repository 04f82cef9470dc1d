"""What the rules ask of a parse: the gap between two words, and predicates of words.

In: a Doc. Out: gaps, and answers about their words. Trade-off: which prepositions a word requires is a list, since the
parse does not say it and no lemmatizer runs; the list holds English.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from spt.segment.locks import Lock, find_locks, words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

PLACE_TIME = words(
    "in at on during since until till through near across into from around within after before above "
    "below over under between among along beside behind beyond inside outside throughout toward "
    "towards onto via"
)
"""Prepositions that go with a complement to their right, even when it is a name."""

REQUIRED = words(
    "account:for accuse:of apply:for ask:for believe:in belong:to call:for celebrate:for come:from "
    "concentrate:on consist:of contribut:to deal:with depend:on descend:from famous:for focus:on "
    "graduat:from hear:of hear:about heard:of heard:about insist:on interest:in known:for known:to "
    "lead:to led:to listen:to look:at look:for look:after object:to participat:in praise:for "
    "recogni:for refer:to regard:as rel:on renown:for report:to respond:to respond:with result:in "
    "serv:as succeed:in suffer:from talk:about think:of think:about thought:of turn:to turn:into "
    "wait:for work:as"
)
"""Verbs and adjectives (stems, for no lemmatizer runs) with the preposition they require."""

LIGHT_VERBS = words("make makes made take takes took have has had keep keeps kept give gives gave do does did")
KINDS = words("city town village port island state province county district region kingdom republic month year")
"""Nouns whose `of` says the same thing again (`the ancient city of Zanaris`)."""

DIRECTIONS = words("north south east west northeast northwest southeast southwest")
COPULAS = words("is are was were")
CLAUSE_MARKS = frozenset(",;:?!.…—–")
VERBAL = ("VERB", "AUX")
NOMINAL = ("NOUN", "PROPN", "NUM")


@dataclass(frozen=True)
class ParsedDoc:
    """A Doc with what the rules ask of it."""

    doc: "Doc"

    @cached_property
    def tokens(self) -> list["Token"]:
        """Return the tokens; a Doc makes each anew whenever it is asked for one."""
        return list(self.doc)

    @cached_property
    def locks(self) -> dict[int, Lock]:
        """Return the lock each locked token belongs to."""
        return {i: lock for lock in find_locks(self.doc) for i in range(lock.start, lock.end)}

    @property
    def starts(self) -> list[int]:
        """Return the characters where sentences start; one that the parser starts inside a lock does not count."""
        locks = {span.start_char: self.locks.get(span.start) for span in self.doc.sents}
        return [start for start, lock in locks.items() if lock is None or self.doc[lock.start].idx == start]

    @property
    def names(self) -> list[tuple[int, int]]:
        """Return the (start, end) characters of names and quoted titles."""
        locks = dict.fromkeys(lock for lock in self.locks.values() if lock.kind != "number")
        return [(self.doc[lock.start].idx, _end(self.doc[lock.end - 1])) for lock in locks]

    @cached_property
    def chunks(self) -> dict[int, tuple[int, int]]:
        """Return the noun chunk (start, end) each token belongs to; empty where the language has none."""
        if not self.doc.has_annotation("DEP"):
            return {}
        try:
            spans = [(chunk.start, chunk.end) for chunk in self.doc.noun_chunks]
        except NotImplementedError:
            return {}
        return {i: (start, end) for start, end in spans for i in range(start, end)}


def _end(token: "Token") -> int:
    return int(token.idx) + len(token)


class Gap(NamedTuple):
    """White space between two words: `left` ends before it (its punctuation skipped), `right` starts after it."""

    parse: ParsedDoc
    at: int
    left: "Token"
    right: "Token"

    @property
    def left_lock(self) -> Lock | None:
        """Return the lock that the left word ends, or is in."""
        return self.parse.locks.get(self.left.i)

    @property
    def right_lock(self) -> Lock | None:
        """Return the lock that the right word starts, or is in."""
        return self.parse.locks.get(self.right.i)

    @property
    def mark(self) -> str:
        """Return the last character before the gap."""
        return str(self.parse.tokens[self.at - 1].text[-1:])


def is_preposition(token: "Token") -> bool:
    """Return whether a word is a preposition with a complement."""
    return (token.pos_ == "ADP" and token.dep_ in ("prep", "agent", "pcomp", "dative")) or token.dep_ == "agent"


def leans_left(parse: ParsedDoc, preposition: "Token") -> bool:
    """Return whether a preposition stays with the word before it.

    So do `of`, the passive `by`, `as`, a required one, and one before a person's name.
    """
    word = preposition.lower_
    if word in ("of", "as") or preposition.dep_ == "agent":
        return not preposition.is_sent_start
    lock = parse.locks.get(preposition.i + 1)
    return is_required(preposition) or (word not in PLACE_TIME and lock is not None and lock.person)


def is_required(preposition: "Token") -> bool:
    """Return whether the word directly before a preposition requires it (`graduated from`)."""
    if preposition.head.i != preposition.i - 1:
        return False
    head: str = preposition.head.lower_
    stems = (stem for stem, _, word in (pair.partition(":") for pair in REQUIRED) if word == preposition.lower_)
    return any(head.startswith(stem) for stem in stems)


def names_somebody(parse: ParsedDoc, of: "Token") -> bool:
    """Return whether a relational `of` leads to a name (`the daughter of the poet Lord Byron`), not to a kind's."""
    start, end = parse.chunks.get(of.i + 1, (of.i + 1, of.i + 2))
    locks = [lock for i in range(start, end) if (lock := parse.locks.get(i)) is not None]
    after = parse.locks.get(end)
    named = any(lock.kind != "number" for lock in locks) or (after is not None and after.person)
    return named and of.head.lower_ not in KINDS | DIRECTIONS


def is_finite(verb: "Token") -> bool:
    """Return whether a verb stands in a clause of its own: it has a tense, or an auxiliary."""
    return verb.tag_ in ("VBD", "VBZ", "VBP") or any(child.dep_ in ("aux", "auxpass") for child in verb.lefts)


def is_possessed(noun: "Token") -> bool:
    """Return whether a noun follows its possessor's `'s` directly (`Tom Cruise's mother`)."""
    return bool(noun.i > 0 and noun.nbor(-1).tag_ == "POS" and noun.pos_ == "NOUN")


def starts_verb_group(token: "Token") -> bool:
    """Return whether a verb group starts here: the first of a verb's adjacent auxiliaries, negation and adverbs."""
    verb = token if token.pos_ in VERBAL and token.dep_ not in ("aux", "auxpass", "amod") else token.head
    if verb.pos_ not in VERBAL or verb.i < token.i:
        return False
    return bool(token.i == verb.i or (token.dep_ in ("aux", "auxpass", "neg", "advmod") and token.i < verb.i))
