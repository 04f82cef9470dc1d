"""Doc → locks: spans of tokens that are never cut (names, quoted titles, numbers and dates).

Overlapping locks join, so that the longest reading of a name wins. Trade-off: capitals are believed as much as the
entity recogniser, which misses most invented names; a language that capitalises its nouns gets longer units.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token


def words(text: str) -> frozenset[str]:
    """Return the words of `text` as a set."""
    return frozenset(text.split())


NAME_LABELS = words("PERSON PER FAC ORG GPE LOC PRODUCT EVENT WORK_OF_ART LAW MISC")
NUMBER_LABELS = words("DATE TIME MONEY QUANTITY PERCENT CARDINAL")
_PLACES = words("GPE LOC FAC")
_BRIDGES = words("of the de van von der den del della di da la le du dos al el bin ibn")
_SMALL = _BRIDGES | words("a an and as at by for from in into on or to with")
_OPENING = {'"': '"', "“": "”", "«": "»", "„": "“", "‘": "’"}
_TITLE_WORDS = 12
_NUMBER_WORDS = 5
_RUN_WORDS = 8  # more capitals in a row are a headline or shouting, not a name


@dataclass(frozen=True)
class Lock:
    """Tokens `start` to `end`. `kind` is `name`, `title` or `number`; `person` a name that may be somebody's."""

    start: int
    end: int
    kind: str
    person: bool = False


def find_locks(doc: "Doc") -> list[Lock]:
    """Return the locks of a Doc, in order, none overlapping another."""
    titles = list(_titles(doc))
    quoted = {i for lock in titles for i in range(lock.start, lock.end)}
    named = [lock for lock in (*_entities(doc), *_runs(doc)) if not quoted & set(range(lock.start, lock.end))]
    merged: list[Lock] = []
    for lock in sorted([*titles, *named], key=lambda lock: (lock.start, lock.end)):
        last = merged[-1] if merged else None
        if last and (lock.start < last.end or _is_place_pair(doc, last, lock)):
            kind = "name" if "name" in (last.kind, lock.kind) else last.kind
            longer = max(last, lock, key=lambda either: either.end - either.start)
            merged[-1] = Lock(last.start, max(last.end, lock.end), kind, longer.person)
        else:
            merged.append(lock)
    return merged


def is_capitalised(token: "Token") -> bool:
    """Return whether a token is written as a name: a capital first, or an initial."""
    return bool(token.text[:1].isupper())


def _titles(doc: "Doc") -> Iterator[Lock]:
    after = 0
    for i, token in enumerate(doc):
        if i < after or token.text not in _OPENING:
            continue
        end = _closing_quote(doc, i)
        if end is not None and _is_title(doc[i + 1 : end]):
            yield Lock(i, end + 1, "title")
            after = end + 1


def _closing_quote(doc: "Doc", start: int) -> int | None:
    closing = _OPENING[doc[start].text]
    if doc[start].whitespace_:
        return None
    for i in range(start + 1, min(start + _TITLE_WORDS + 2, len(doc))):
        if doc[i].text == closing:
            return i
    return None


def _is_title(span: "Span") -> bool:
    parts = [token for token in span if token.text[:1].isalnum()]
    written = all(is_capitalised(part) or part.text in _SMALL or part.is_digit for part in parts)
    return bool(parts) and written and not parts[0].text.islower() and ":" not in span.text


def _entities(doc: "Doc") -> Iterator[Lock]:
    for entity in doc.ents:
        start, end = entity.start, entity.end
        while start < end and doc[start].pos_ in ("DET", "ADP", "PUNCT", "CCONJ", "SPACE"):
            start += 1
        while end > start and (doc[end - 1].is_punct or doc[end - 1].is_space or doc[end - 1].tag_ == "POS"):
            end -= 1
        if entity.label_ in NAME_LABELS and any(is_capitalised(token) for token in doc[start:end]):
            yield from _name_parts(doc, start, end, entity.label_)
        elif entity.label_ in NUMBER_LABELS and _is_short_phrase(doc[start:end]):
            yield Lock(start, end, "number")


def _is_short_phrase(span: "Span") -> bool:
    parts = [token for token in span if not token.is_punct]
    return 0 < len(parts) <= _NUMBER_WORDS and not any(token.pos_ in ("VERB", "AUX") for token in parts)


def _name_parts(doc: "Doc", start: int, end: int, label: str) -> Iterator[Lock]:
    first = start
    for i in range(start, end):
        if (doc[i].text in ",;:()" and label not in _PLACES) or doc[i].text in _OPENING:
            if first < i:
                yield _name(doc, first, i, label)
            first = i + 1
    if first < end:
        yield _name(doc, first, end, label)


def _name(doc: "Doc", start: int, end: int, label: str) -> Lock:
    span = doc[start:end]
    personal = label in ("PERSON", "PER") or (end - start > 1 and label in ("", "ORG", "GPE", "PRODUCT", "MISC"))
    written = all(is_capitalised(token) or token.text in ("-", "de", "van", "von", "la") for token in span)
    described = any(token.pos_ == "DET" for token in (*span.root.lefts, *doc[max(start - 1, 0) : start]))
    return Lock(start, end, "name", personal and written and (label in ("PERSON", "PER") or not described))


def _runs(doc: "Doc") -> Iterator[Lock]:
    """Yield runs of two or more capitalised words, bridged by up to two small words, with a year after a last `of`."""
    tokens = list(doc)  # a Doc makes a Token anew each time it is asked for one
    after = 0
    for i, token in enumerate(tokens):
        if i < after or not _starts_name(token):
            continue
        after, capitals = _run_end(tokens, i)
        if 1 < capitals <= _RUN_WORDS:
            yield _name(doc, i, after, token.ent_type_ if token.ent_type_ in NAME_LABELS else "")


def _run_end(tokens: Sequence["Token"], start: int) -> tuple[int, int]:
    end = i = start + 1
    capitals = 1
    while i < len(tokens):
        bridge = i
        while bridge < len(tokens) and bridge - i < 2 and tokens[bridge].text in _BRIDGES:
            bridge += 1
        if bridge >= len(tokens):
            break
        if _continues_name(tokens[bridge]) or (
            bridge > i and tokens[bridge - 1].text == "of" and tokens[bridge].is_digit
        ):
            capitals += 1
            end = i = bridge + 1
        elif tokens[i].text == "-" and i + 1 < len(tokens) and not tokens[i - 1].whitespace_:
            i = end = i + 2
        else:
            break
    return end, capitals


def _starts_name(token: "Token") -> bool:
    if not _continues_name(token):
        return False
    return not token.is_sent_start or token.pos_ in ("PROPN", "X", "")


def _continues_name(token: "Token") -> bool:
    if not is_capitalised(token) or token.text == "I" or not token.text[0].isalpha():
        return False
    # A tagger guesses at invented names; the list of stop words does not.
    return token.pos_ == "PROPN" or not token.is_stop


def _is_place_pair(doc: "Doc", left: Lock, right: Lock) -> bool:
    if right.start != left.end + 1 or doc[left.end].text != ",":
        return False
    return doc[left.end - 1].ent_type_ == "GPE" and doc[right.start].ent_type_ in ("GPE", "LOC")
