"""What an assistant is asked, and what it answers.

    Item(text, boundaries) ──▶ Reply ──▶ cuts out of the boundaries, or the reason why not

In: one sentence with the offsets where it may be cut. Trade-off: boundaries come from the caller, so that nothing here
knows of tokenizers of words or of scripts without spaces.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Item:
    """A sentence and its boundaries: offsets where a word (or the white space before it) starts, strictly increasing.

    The text is one line that UTF-8 can hold: the caller puts a space for a line break. Of the boundaries, the
    assistant has no say at those in `whole` (never cut) and in `forced` (always cut).
    """

    text: str
    boundaries: tuple[int, ...]
    whole: frozenset[int] = frozenset()
    forced: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Check that the boundaries are interior and increasing; ours, not the user's, to keep."""
        bounds = (0, *self.boundaries, len(self.text))
        assert not self.boundaries or all(left < right for left, right in pairwise(bounds)), self
        assert self.whole | self.forced <= set(self.boundaries), self
        assert not self.whole & self.forced, self

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the text cut at every boundary."""
        return tuple(self.text[start:end] for start, end in pairwise((0, *self.boundaries, len(self.text))))

    @property
    def open(self) -> tuple[int, ...]:
        """Return the boundaries at which the assistant decides."""
        settled = self.whole | self.forced
        return tuple(offset for offset in self.boundaries if offset not in settled)

    def settle(self, cuts: Iterable[int]) -> tuple[int, ...]:
        """Return cuts with what is not left to the assistant put right."""
        return tuple(sorted((set(cuts) - self.whole) | self.forced))


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
