"""Reply → cuts: a copy with separators is believed only where it is the sentence.

    Ada Brown | is the mother of | Carl.      reply
    Ada Brown   is the mother of   Carl.      letters and digits must be those of the sentence, in order
             ^                ^               a separator stands where the sentence may be cut

In: a reply, an item. Out: cuts out of the item's boundaries, or a reason. First the whole is compared but for white
space, then its letters and digits alone, so that a curly quote or a lost comma costs nothing. Trade-off: an exact copy
without any separator is an answer (one unit), though a lazy one.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from spt.assistant.item import Item

OPENING = 3
"""A demonstration is recognised by so many first words."""


def verify(reply: str, item: Item, mark: str, demonstrations: Sequence[str] = ()) -> tuple[int, ...] | str:
    """Return the cuts that a reply asks for, or why it is no copy of the item.

    The reasons: `empty`, `separator_in_text`, `parroted` (a demonstration instead), `extra_text` (a "Note:" behind the
    copy), `incomplete`, `changed`, `cut_inside_word`.
    """
    if mark in item.text:
        return "separator_in_text"
    parts = reply.strip().split(mark)
    copy = "".join(parts)
    if not copy.strip():
        return "empty"
    aligned = [
        letters for letters in (_visible, _letters) if letters(item.text) and letters(copy) == letters(item.text)
    ]
    for letters in aligned:
        cuts = _cuts(parts, item, letters)
        if cuts is not None:
            return cuts
    return "cut_inside_word" if aligned else _difference(_letters(copy), item, demonstrations)


def _visible(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _letters(text: str) -> str:
    # Decomposed, since a copy may compose what the sentence does not; marks carry meaning in many scripts.
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(character for character in decomposed if unicodedata.category(character)[0] in "LNM")


def _cuts(parts: Sequence[str], item: Item, letters: Callable[[str], str]) -> tuple[int, ...] | None:
    """Return for each separator the boundary with as many letters before it; None where one has no such boundary.

    Of several, which only signs part, it is the one with the nearest number of signs.
    """
    places: dict[int, list[tuple[int, int]]] = {}
    for offset, (count, signs) in zip(item.boundaries, _counted(item.pieces, letters), strict=False):
        places.setdefault(count, []).append((signs, offset))
    whole = len(letters(item.text))
    asked = [place for place in list(_counted(parts, letters))[:-1] if 0 < place[0] < whole]
    if any(count not in places for count, _ in asked):
        return None
    nearest = {min((abs(signs - wish), offset) for signs, offset in places[count])[1] for count, wish in asked}
    return tuple(sorted(nearest))


def _counted(pieces: Iterable[str], letters: Callable[[str], str]) -> Iterator[tuple[int, int]]:
    """Yield, after each piece, how many letters there were so far, and how many signs since the last one."""
    count = signs = 0
    for piece in pieces:
        tail = _visible(re.sub(r"^.*[^\W_]", "", piece, flags=re.DOTALL))
        signs = len(tail) + (signs if tail == _visible(piece) else 0)
        count += len(letters(piece))
        yield count, signs


def _difference(found: str, item: Item, demonstrations: Sequence[str]) -> str:
    wanted = _letters(item.text)
    shown = [_letters(" ".join(demonstration.split()[:OPENING])) for demonstration in demonstrations]
    if any(start and found.startswith(start) and not wanted.startswith(start) for start in shown):
        return "parroted"
    if wanted and found.startswith(wanted):
        return "extra_text"
    return "incomplete" if wanted.startswith(found) else "changed"
