"""Where a text may be cut at all, whatever a segmenter wishes.

In: a text and the offsets where a segmenter would like units to start. Out: legal cuts, strictly increasing and
interior. A cut stands at the start of a run of white space, so that the white space belongs to the later unit; beside a
script that writes no spaces (Han, kana, Thai, ...) it may stand at any boundary the segmenter's tokenizer gave. No unit
is white space alone. Trade-off: a wish inside a word of a spaced script is silently no cut, which is the point.
"""

import unicodedata
from collections.abc import Iterable

from spt.records import writes_no_spaces

NO_BREAK = "\u00a0\u2007\u202f"
"""White space whose meaning is that nothing is parted there."""


def legal_cuts(text: str, wishes: Iterable[int]) -> tuple[int, ...]:
    """Return the cuts nearest to the left of `wishes` (offsets of unit starts, white space skipped or not)."""
    end = len(text.rstrip())
    cuts = {_legal_cut(text, wish, end) for wish in wishes}
    return tuple(sorted(cut for cut in cuts if cut is not None))


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span widened to the white space around it, so that its ends are legal cuts (a quote, a comma, `'s`).

    Beside a script that writes no spaces it stays as it is.
    """
    while start > 0 and not text[start - 1].isspace() and not _is_spaceless_boundary(text[start - 1], text[start]):
        start -= 1
    while end < len(text) and not text[end].isspace() and not _is_spaceless_boundary(text[end - 1], text[end]):
        end += 1
    return start, end


def _legal_cut(text: str, wish: int, end: int) -> int | None:
    right = wish
    while right < end and text[right].isspace():
        right += 1
    left = min(wish, end)
    while left > 0 and text[left - 1].isspace():
        left -= 1
    if left == 0 or right >= end:
        return None
    if left == right:
        return left if _is_spaceless_boundary(text[left - 1], text[left]) else None
    return None if all(character in NO_BREAK for character in text[left:right]) else left


def _is_spaceless_boundary(before: str, after: str) -> bool:
    if unicodedata.category(after).startswith("M"):
        return False
    return writes_no_spaces(before) or writes_no_spaces(after)
