"""Text → text, or words, in which what is equal compares equal.

In: predictions and targets as they came. Out: text in one normal form; words without punctuation. Trade-off: a script
that writes no spaces is read character by character, which needs no dictionary and counts a word there several times.
"""

import unicodedata
from functools import cache, lru_cache

from spt.records import writes_no_spaces

# Every white space of Unicode lies below U+3001.
_SPACE = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
_QUOTES = "\"'`´‘’‚‛“”„‟«»‹›「」『』"
_PUNCTUATION = ".,;:!?…。、，．；：！？।؟،؛"
_APOSTROPHES = "'’ʼ"


def trim(text: str) -> str:
    """Return the text in NFC, without white space, sentence punctuation and quotes at either end."""
    return unicodedata.normalize("NFC", text).strip(_SPACE + _QUOTES + _PUNCTUATION)


def fold(text: str) -> str:
    """Return the text in NFC with case folded, so that equal means equal but for case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def split_words(text: str) -> tuple[str, ...]:
    """Return the folded words: runs of letters, marks and digits; an apostrophe within one is left out, not a border.

    In a script without spaces every character is a word; a text of nothing but signs is one word.
    """
    return tuple("".join(map(_spaced, fold(text))).split() or fold(trim(text)).split())


@lru_cache(maxsize=1 << 16)  # a target is compared with thousands of predictions
def words(text: str) -> tuple[str, ...]:
    """Return the same of a text that is looked at again and again."""
    return split_words(text)


@cache
def _spaced(character: str) -> str:
    if character in _APOSTROPHES:
        return ""
    if unicodedata.category(character)[0] not in "LMN":
        return " "
    return f" {character} " if writes_no_spaces(character) else character
