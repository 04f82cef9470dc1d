"""Rules about phrases and clauses: noun chunks, conjunctions, prepositions, verbs and what they take.

Each looks at one gap and says cut (True), keep (False) or nothing (None); `rules` gives them their order.
"""

from spt.segment.gaps import (
    COPULAS,
    LIGHT_VERBS,
    NOMINAL,
    VERBAL,
    Gap,
    is_finite,
    is_possessed,
    is_preposition,
    leans_left,
    names_somebody,
    starts_verb_group,
)


def inside_noun_chunk(gap: Gap) -> bool | None:
    """Keep a noun chunk whole."""
    chunk = gap.parse.chunks.get(gap.left.i)
    return False if chunk is not None and chunk == gap.parse.chunks.get(gap.right.i) else None


def conjunction(gap: Gap) -> bool | None:
    """Cut before a conjunction, except in a pair of single words, and after `between`; never after it."""
    if gap.left.dep_ == "cc" or gap.left.pos_ == "CCONJ":
        return False
    if gap.right.dep_ != "cc" and gap.right.pos_ != "CCONJ":
        return None
    first, after = gap.left, gap.parse.tokens[min(gap.right.i + 1, len(gap.parse.tokens) - 1)]
    if any(token.lower_ == "between" for token in (first.head, first.head.head)):
        return False
    paired = after.head == first and after.n_rights == 0
    bare = after.pos_ in ("ADJ", "ADV") or (after.pos_ == "NOUN" and first.n_lefts == after.n_lefts == 0)
    return not (paired and after.pos_ == first.pos_ and bare)


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
    return gap.left.pos_ in NOMINAL if gap.right.tag_ == "TO" else None


def preposition(gap: Gap) -> bool | None:
    """Cut before a preposition, except where what comes before requires it."""
    if gap.right.dep_ == "prt":
        return False
    if is_preposition(gap.right):
        related = gap.left.head == gap.right or gap.right.head == gap.left
        if is_preposition(gap.left) or (gap.left.pos_ == "ADV" and related):
            return False
        return not leans_left(gap.parse, gap.right)
    return None


def complement(gap: Gap) -> bool | None:
    """Cut after a preposition only where it leans left and its complement is long."""
    if not is_preposition(gap.left):
        return None
    if not leans_left(gap.parse, gap.left):
        return False
    start, end = gap.parse.chunks.get(gap.right.i, (gap.right.i, gap.right.i + 1))
    if gap.left.lower_ == "of":
        long = gap.right.pos_ in ("DET", "PRON") and end - start > 2
        return long or names_somebody(gap.parse, gap.left)
    if gap.left.i > 0 and gap.parse.locks.get(gap.left.i - 1) is not None:
        # What it leans on is cut off before it, so it goes with its complement (`elected X | as its mayor`).
        return False
    return gap.right.pos_ in ("DET", "NUM") or end - start > 1


def verb(gap: Gap) -> bool | None:
    """Cut before a verb, with its auxiliaries and adverbs, after a noun."""
    if not starts_verb_group(gap.right):
        return None
    if gap.right.lower_ in COPULAS and (is_possessed(gap.left) or _names_its_holder(gap)):
        return False
    if gap.left.pos_ in NOMINAL or gap.left.tag_ == "POS":
        return True
    return True if gap.left.pos_ == "ADJ" and gap.left.i in gap.parse.chunks else None


def _names_its_holder(gap: Gap) -> bool:
    """Return whether a copula stands between a common noun and a person's name (`Our lead is | ...`)."""
    after = gap.parse.locks.get(gap.right.i + 1)
    return gap.left.pos_ == "NOUN" and gap.left_lock is None and after is not None and after.person


def clause_subject(gap: Gap) -> bool | None:
    """Cut a verb from the clause it governs (`How do you think | history | will remember`)."""
    start, end = gap.parse.chunks.get(gap.right.i, (-1, 0))
    if gap.left.pos_ != "VERB" or start != gap.right.i:
        return None
    subject = gap.parse.tokens[end - 1]
    own = subject.dep_ in ("nsubj", "nsubjpass") and subject.head.dep_ == "ccomp" and subject.head.head == gap.left
    return True if own and is_finite(subject.head) else None


def object_of_verb(gap: Gap) -> bool | None:
    """Cut a verb from an object of two words or more, not from a bare one, a pronoun, or a predicate.

    A copula leans on a pronoun before it instead (`they were | the courageous firefighter`).
    """
    phrasal = gap.left.dep_ == "prt" and gap.left.head.i == gap.left.i - 1
    if not (phrasal or gap.left.pos_ in VERBAL) or gap.right.i not in gap.parse.chunks:
        return None
    start, end = gap.parse.chunks[gap.right.i]
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
        return gap.left.pos_ not in ("ADP", "DET", "ADV") if gap.left.i not in gap.parse.chunks else True
    if gap.right.pos_ == "ADV" and gap.left.pos_ in NOMINAL:
        return True
    return None


def new_phrase(gap: Gap) -> bool | None:
    """Cut before a noun phrase after another, or a subject after a clause."""
    starts = gap.parse.chunks.get(gap.right.i, (-1, -1))[0] == gap.right.i
    if gap.left.pos_ == "VERB" and gap.right.lower_ in ("i", "we", "he", "she", "they"):
        return True
    return True if starts and (gap.left.pos_ in NOMINAL or gap.left.dep_ == "dative") else None
