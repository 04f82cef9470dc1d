"""Many phrases → where they stand in a text, in one pass over its words.

In: phrases and texts as words (`spt.metrics.text.words`: case, punctuation and white space are gone). Out: each place
of each phrase. A phrase is looked up by the rarest pair of neighbours among all phrases, then compared whole.
Trade-off: phrases of one vocabulary in every order would share their pairs and take longer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

Words = tuple[str, ...]


class Phrases:
    """A set of phrases; those without words are left out."""

    def __init__(self, phrases: Iterable[Words]) -> None:
        self._phrases = dict.fromkeys(phrase for phrase in phrases if phrase)
        frequency = Counter(piece for phrase in self._phrases for piece in set(_pieces(phrase)))
        self._anchored: dict[Words, list[tuple[int, Words]]] = defaultdict(list)
        for phrase in self._phrases:
            pieces = _pieces(phrase)
            offset = min(range(len(pieces)), key=lambda at: frequency[pieces[at]])
            self._anchored[pieces[offset]].append((offset, phrase))
        self._any_short = any(len(phrase) == 1 for phrase in self._phrases)

    def find(self, text: Words) -> Iterator[tuple[int, Words]]:
        """Yield (number of its first word, phrase) of every place where a phrase stands, in no particular order."""
        yield from self._find(text, list(pairwise(text)))
        if self._any_short:
            yield from self._find(text, [(word,) for word in text])

    def _find(self, text: Words, pieces: list[Words]) -> Iterator[tuple[int, Words]]:
        for at, piece in enumerate(pieces):
            for offset, phrase in self._anchored.get(piece, ()):
                start = at - offset
                if start >= 0 and text[start : start + len(phrase)] == phrase:
                    yield start, phrase


def _pieces(phrase: Words) -> list[Words]:
    return list(pairwise(phrase)) if len(phrase) > 1 else [phrase]
