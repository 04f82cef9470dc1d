"""Doc → where its units start: an ordered list of rules, the first with an opinion decides.

In: a Doc. Out: character offsets. A rule looks at one gap between two words, `left` and `right`, and says cut (True),
keep (False) or nothing (None). Order: what is never cut, punctuation, names, phrases, clauses. Trade-off: a rule sees
the parse around one gap only, never the whole sentence, so each can be read and tested alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from spt.segment.build import Found
from spt.segment.gaps import (
    CLAUSE_MARKS,
    COPULAS,
    LIGHT_VERBS,
    NOMINAL,
    PLACE_TIME,
    VERBAL,
    Gap,
    Sentence,
    is_possessed,
    is_preposition,
    is_required,
    leans_left,
    starts_verb_group,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc

Rule = Callable[[Gap], bool | None]

_MARKS = 6
"""Punctuation marks looked past at most in search of a word, so that rows of them cost no quadratic time."""


def find_units(doc: "Doc") -> Found:
    """Return the character offsets where units start, where sentences do, and the names."""
    sentence = Sentence(doc)
    return Found([doc[gap.at].idx for gap in find_gaps(sentence) if _decide(gap)], sentence.starts, sentence.names)


def find_gaps(sentence: Sentence) -> list[Gap]:
    """Return the gaps of a Doc, in order."""
    return [gap for i in range(1, len(sentence.doc)) if (gap := _gap(sentence, i)) is not None]


def _gap(sentence: Sentence, at: int) -> Gap | None:
    doc = sentence.doc
    if doc[at].is_space or not (doc[at - 1].whitespace_ or doc[at - 1].is_space or not doc[at].text.isascii()):
        return None
    left, right = at - 1, at
    while left > max(0, at - _MARKS) and (doc[left].is_punct or doc[left].is_space or doc[left].tag_ == "POS"):
        left -= 1
    while right < min(len(doc) - 1, at + _MARKS) and (doc[right].is_punct or doc[right].is_quote):
        right += 1
    return Gap(sentence, at, doc[left], doc[right])


def _decide(gap: Gap) -> bool:
    return next((opinion for rule in RULES if (opinion := rule(gap)) is not None), False)


def in_lock(gap: Gap) -> bool | None:
    """Keep a lock whole."""
    lock = gap.sentence.locks.get(gap.at - 1)
    return False if lock is not None and lock is gap.sentence.locks.get(gap.at) else None


def sentence_start(gap: Gap) -> bool | None:
    """Cut where a sentence starts."""
    return True if gap.sentence.doc[gap.at].is_sent_start else None


def punctuation(gap: Gap) -> bool | None:
    """Cut after a comma and its like, but not after an interjection, nor between adjectives of one noun."""
    before = gap.sentence.doc[gap.at - 1]
    if gap.sentence.doc[gap.at].is_left_punct or gap.sentence.doc[gap.at].is_quote:
        return True
    if gap.mark not in CLAUSE_MARKS and not (before.is_quote and before.i > gap.left.i):
        return None
    if before.is_alpha or (gap.mark == "." and not before.is_punct):  # an abbreviation
        return None
    if gap.mark == "," and gap.left.dep_ == "intj":
        return False
    return not (gap.mark == "," and gap.left.dep_ == gap.right.dep_ == "amod" and gap.left.head == gap.right.head)


def after_name(gap: Gap) -> bool | None:
    """Cut after a name, unless it names the kind of a common noun (`FIFA World Cup final`)."""
    lock = gap.left_lock
    if lock is None or lock.kind == "number" or gap.left.i != lock.end - 1:
        return None
    possessive = gap.sentence.doc[gap.at - 1].tag_ == "POS"
    if possessive:
        return lock.person or lock.end - lock.start > 1
    names_a_kind = gap.left.dep_ in ("compound", "nmod", "amod", "poss") and gap.left.head.i >= gap.right.i
    return lock.person or not names_a_kind


def before_person(gap: Gap) -> bool | None:
    """Cut before a person's name, but for an article alone, or a preposition of place or time."""
    lock = gap.right_lock
    if lock is None or not lock.person or gap.right.i != lock.start:
        return None
    if gap.left.pos_ == "DET" and gap.at - 1 == gap.left.i:
        return False
    return not (gap.left.pos_ == "ADP" and gap.left.lower_ in PLACE_TIME and not is_required(gap.left))


def before_name(gap: Gap) -> bool | None:
    """Cut before another name after a verb, or after a preposition that leans left."""
    lock = gap.right_lock
    if lock is None or lock.kind == "number" or gap.right.i != lock.start:
        return None
    if gap.left.pos_ == "ADP":
        return leans_left(gap.sentence, gap.left) and not (gap.left.lower_ == "of" and lock.end - lock.start == 1)
    return True if gap.left.pos_ in VERBAL or lock.kind == "title" else None


def inside_noun_chunk(gap: Gap) -> bool | None:
    """Keep a noun chunk whole."""
    chunk = gap.sentence.chunks.get(gap.left.i)
    return False if chunk is not None and chunk == gap.sentence.chunks.get(gap.right.i) else None


def conjunction(gap: Gap) -> bool | None:
    """Cut before a conjunction, except in a pair of single words, and after `between`; never after it."""
    if gap.left.dep_ == "cc" or gap.left.pos_ == "CCONJ":
        return False
    if gap.right.dep_ != "cc" and gap.right.pos_ != "CCONJ":
        return None
    first, after = gap.left, gap.sentence.doc[min(gap.right.i + 1, len(gap.sentence.doc) - 1)]
    if any(token.lower_ == "between" for token in (first.head, first.head.head)):
        return False
    paired = after.head == first and after.n_rights == 0
    return not (paired and after.pos_ == first.pos_ and after.pos_ in ("ADJ", "ADV"))


def clause_opener(gap: Gap) -> bool | None:
    """Cut before a relative pronoun, a question word or a subordinator, and keep what follows with it."""
    if gap.right.dep_ == "mark" or gap.right.tag_ in ("WDT", "WP", "WP$", "WRB"):
        return gap.left.pos_ not in ("ADP", "SCONJ") and gap.left.dep_ != "mark"
    if gap.left.dep_ == "pobj" and gap.left.tag_ == "WDT":
        return True
    if gap.left.dep_ == "mark" or gap.left.tag_ in ("WDT", "WP$"):
        return False
    return None


def infinitive(gap: Gap) -> bool | None:
    """Cut before an infinitive's `to` after a noun, and never part it from its verb."""
    if gap.left.tag_ == "TO":
        return False
    return gap.left.pos_ in ("NOUN", "PROPN") if gap.right.tag_ == "TO" else None


def preposition(gap: Gap) -> bool | None:
    """Cut before a preposition, except where what comes before requires it."""
    if gap.right.dep_ == "prt":
        return False
    if is_preposition(gap.right):
        related = gap.left.head == gap.right or gap.right.head == gap.left
        if is_preposition(gap.left) or (gap.left.pos_ == "ADV" and related):
            return False
        return not leans_left(gap.sentence, gap.right)
    return None


def complement(gap: Gap) -> bool | None:
    """Cut after a preposition only where it leans left and its complement is long."""
    if not is_preposition(gap.left):
        return None
    if not leans_left(gap.sentence, gap.left):
        return False
    start, end = gap.sentence.chunks.get(gap.right.i, (gap.right.i, gap.right.i + 1))
    if gap.left.lower_ == "of":
        return gap.right.pos_ in ("DET", "PRON") and end - start > 2
    return gap.right.pos_ in ("DET", "NUM") or end - start > 1


def verb(gap: Gap) -> bool | None:
    """Cut before a verb, with its auxiliaries and adverbs, after a noun."""
    if not starts_verb_group(gap.right):
        return None
    if gap.right.lower_ in COPULAS and is_possessed(gap.left):
        return False
    if gap.left.pos_ in NOMINAL or gap.left.tag_ == "POS":
        return True
    return True if gap.left.pos_ == "ADJ" and gap.left.i in gap.sentence.chunks else None


def object_of_verb(gap: Gap) -> bool | None:
    """Cut a verb from an object of two words or more, not from a bare one, a pronoun, or a predicate.

    A copula leans on a pronoun before it instead (`they were | the courageous firefighter`).
    """
    if gap.left.pos_ not in VERBAL or gap.right.i not in gap.sentence.chunks:
        return None
    start, end = gap.sentence.chunks[gap.right.i]
    if gap.left.lower_ == "being":
        return True
    if end - start < 2 or (gap.right.pos_ == "PRON" and gap.right.tag_ != "PRP$"):
        return False
    if gap.left.pos_ == "AUX":
        return bool(gap.left.i > 0 and gap.left.nbor(-1).pos_ == "PRON" and gap.right.pos_ == "DET")
    return not (gap.left.lower_ in LIGHT_VERBS and gap.right.lower_ in ("a", "an"))


def adverbial(gap: Gap) -> bool | None:
    """Cut before a time, a place or an adverb after a finished noun phrase."""
    lock = gap.right_lock
    if gap.right.pos_ == "ADV" and any(is_preposition(token) for token in gap.right.rights):
        return True
    if lock is not None and lock.kind == "number" and gap.left.pos_ == "VERB":
        return lock.end - lock.start > 1
    if lock is not None and lock.kind == "number" and gap.right.dep_ in ("npadvmod", "nummod", "compound", "amod"):
        return gap.left.pos_ not in ("ADP", "DET", "ADV") if gap.left.i not in gap.sentence.chunks else True
    if gap.right.pos_ == "ADV" and gap.left.pos_ in NOMINAL:
        return True
    return None


def new_phrase(gap: Gap) -> bool | None:
    """Cut before a noun phrase after another, or a subject after a clause."""
    starts = gap.sentence.chunks.get(gap.right.i, (-1, -1))[0] == gap.right.i
    if gap.left.pos_ == "VERB" and gap.right.lower_ in ("i", "we", "he", "she", "they"):
        return True
    return True if starts and gap.left.pos_ in NOMINAL else None


RULES: tuple[Rule, ...] = (
    in_lock, sentence_start, punctuation, after_name, before_person, before_name, inside_noun_chunk, conjunction,
    clause_opener, infinitive, preposition, complement, verb, object_of_verb, adverbial, new_phrase,
)  # fmt: skip
