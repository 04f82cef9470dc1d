"""Doc → where its units start: an ordered list of rules, the first with an opinion decides.

In: a Doc. Out: character offsets. A rule looks at one gap between two words, `left` and `right`, and says cut (True),
keep (False) or nothing (None). Order: what is never cut, punctuation, names, phrases, clauses. Trade-off: a rule sees
the parse around one gap only, never the whole sentence, so each can be read and tested alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from spt.segment.build import Found
from spt.segment.gaps import Gap, ParsedDoc
from spt.segment.name_rules import (
    after_name,
    before_name,
    before_person,
    described_name,
    direction,
    in_lock,
    punctuation,
    sentence_start,
)
from spt.segment.phrase_rules import (
    adverbial,
    clause_opener,
    clause_subject,
    complement,
    conjunction,
    infinitive,
    inside_noun_chunk,
    new_phrase,
    object_of_verb,
    preposition,
    verb,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc

Rule = Callable[[Gap], bool | None]

_MARKS = 6
"""Punctuation marks looked past at most in search of a word, so that rows of them cost no quadratic time."""


def find_units(doc: "Doc") -> Found:
    """Return the character offsets where units start, where sentences do, and the names."""
    parse = ParsedDoc(doc)
    return Found([parse.tokens[gap.at].idx for gap in find_gaps(parse) if _decide(gap)], parse.starts, parse.names)


def find_gaps(parse: ParsedDoc) -> list[Gap]:
    """Return the gaps between the words of a Doc, in order: where a rule, or an assistant, may cut."""
    return [gap for at in range(1, len(parse.tokens)) if (gap := _gap(parse, at)) is not None]


def _gap(parse: ParsedDoc, at: int) -> Gap | None:
    tokens = parse.tokens
    if tokens[at].is_space or not (
        tokens[at - 1].whitespace_ or tokens[at - 1].is_space or not tokens[at].text.isascii()
    ):
        return None
    left, right = at - 1, at
    while left > max(0, at - _MARKS) and (tokens[left].is_punct or tokens[left].is_space or tokens[left].tag_ == "POS"):
        left -= 1
    while right < min(len(tokens) - 1, at + _MARKS) and (tokens[right].is_punct or tokens[right].is_quote):
        right += 1
    return Gap(parse, at, tokens[left], tokens[right])


def _decide(gap: Gap) -> bool:
    for rule in RULES:
        opinion = rule(gap)
        if opinion is not None:
            return opinion
    return False


RULES: tuple[Rule, ...] = (
    in_lock, sentence_start, punctuation, after_name, before_person, before_name, described_name, direction,
    inside_noun_chunk, conjunction, clause_opener, infinitive, preposition, complement, verb, clause_subject,
    object_of_verb, adverbial, new_phrase,
)  # fmt: skip
