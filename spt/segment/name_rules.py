"""Rules about names and marks: what is never cut, sentences, punctuation, names and what stands beside them.

Each looks at one gap and says cut (True), keep (False) or nothing (None); `rules` gives them their order.
"""

from spt.segment.gaps import (
    CLAUSE_MARKS,
    DIRECTIONS,
    KINDS,
    PLACE_TIME,
    VERBAL,
    Gap,
    is_required,
    leans_left,
    names_somebody,
)


def in_lock(gap: Gap) -> bool | None:
    """Keep a lock whole."""
    lock = gap.parse.locks.get(gap.at - 1)
    return False if lock is not None and lock is gap.parse.locks.get(gap.at) else None


def sentence_start(gap: Gap) -> bool | None:
    """Cut where a sentence starts."""
    return True if gap.parse.tokens[gap.at].is_sent_start else None


def punctuation(gap: Gap) -> bool | None:
    """Cut after a comma and its like, but not after an interjection, nor between adjectives of one noun."""
    before = gap.parse.tokens[gap.at - 1]
    if gap.parse.tokens[gap.at].is_left_punct or gap.parse.tokens[gap.at].is_quote:
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
    possessive = gap.parse.tokens[gap.at - 1].tag_ == "POS"
    if possessive:
        return lock.person or lock.end - lock.start > 1
    names_a_kind = gap.left.dep_ in ("compound", "nmod", "amod", "poss") and gap.left.head.i >= gap.right.i
    return lock.person or not names_a_kind


def before_person(gap: Gap) -> bool | None:
    """Cut before a person's name, but not after an article, a name's `and`, or a preposition of place or time."""
    lock = gap.right_lock
    if lock is None or not lock.person or gap.right.i != lock.start:
        return None
    listed = gap.left.pos_ == "CCONJ" and gap.left.i - 1 in gap.parse.locks
    if (gap.left.pos_ == "DET" or listed) and gap.at - 1 == gap.left.i:
        return False
    if gap.left.lower_ == "of" and gap.left.head.lower_ in KINDS:
        return False
    return not (gap.left.pos_ == "ADP" and gap.left.lower_ in PLACE_TIME and not is_required(gap.left))


def before_name(gap: Gap) -> bool | None:
    """Cut before another name after a verb, or after a preposition that leans left."""
    lock = gap.right_lock
    if lock is None or lock.kind == "number" or gap.right.i != lock.start:
        return None
    if gap.left.pos_ == "ADP":
        return leans_left(gap.parse, gap.left) and (gap.left.lower_ != "of" or names_somebody(gap.parse, gap.left))
    return True if gap.left.pos_ in VERBAL or lock.kind == "title" else None


def described_name(gap: Gap) -> bool | None:
    """Cut between an adjective and a name of two words or more that ends its phrase (`The extraordinary | ...`)."""
    lock = gap.right_lock
    if lock is None or lock.kind != "name" or gap.right.i != lock.start or gap.left.pos_ != "ADJ":
        return None
    named = gap.parse.tokens[lock.end - 1]
    ends = lock.end - lock.start > 1 and named.dep_ not in ("compound", "nmod", "poss", "amod")
    return True if ends and gap.left.head == named and gap.left.text.islower() else None


def direction(gap: Gap) -> bool | None:
    """Cut before a place told by its direction (`east of London`)."""
    if gap.right.lower_ not in DIRECTIONS:
        return None
    after = gap.parse.tokens[min(gap.right.i + 1, len(gap.parse.tokens) - 1)]
    return gap.left.pos_ not in ("ADP", "DET", "AUX") if after.lower_ == "of" else None
