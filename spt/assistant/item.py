"""What an assistant is asked, and what it answers.

    Item(text, boundaries) ──▶ Reply ──▶ cuts out of the boundaries, or the reason why not

In: one sentence with the offsets where it may be cut. Trade-off: boundaries come from the caller, so that nothing here
knows of tokenizers of words or of scripts without spaces.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Item:
    """A sentence and its boundaries: offsets where a word (or the white space before it) starts, strictly increasing.

    The text has no line break: where the sentence has one, a space stands for it.
    """

    text: str
    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check that the boundaries are interior and increasing; ours, not the user's, to keep."""
        bounds = (0, *self.boundaries, len(self.text))
        assert not self.boundaries or all(left < right for left, right in pairwise(bounds)), self

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the text cut at every boundary."""
        return tuple(self.text[start:end] for start, end in pairwise((0, *self.boundaries, len(self.text))))

    @property
    def words(self) -> int:
        """Return the number of pieces."""
        return len(self.boundaries) + 1


@dataclass(frozen=True)
class Reply:
    """What came back: `text`, `cuts` (offsets) or `logprobs` (nats, one a boundary), or why nothing did (`failure`).

    `kept`: the same question would be answered the same, so the cache keeps it.
    """

    text: str | None = None
    cuts: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    failure: str | None = None
    kept: bool = True


def items_of(texts: Iterable[str]) -> Iterator[Item]:
    """Yield items whose boundaries are the starts of white space between words."""
    for text in texts:
        yield Item(text, tuple(match.start() for match in re.finditer(r"(?<=\S)\s+(?=\S)", text)))
