"""A copy whose cuts are guessed and corrected until they are the model's own.

    head + Ada Brown sang | in Rome.     drafted; the model reads it all and decides at every boundary anew
                    ^                    the first decision that differs: up to here all is settled, with it
    head + Ada Brown | sang in Rome.     the next draft: settled, then what the model decided behind it

In: an encoded item, then decisions. Out: tokens to read, choices, cuts. Trade-off: what stands behind a wrong guess is
read again, since all of it was read on a wrong premise.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spt.assistant.local import Encoded


class Choice(NamedTuple):
    """After the token at `place`, the token of the separator against that of the word, for a cut at `boundary`."""

    boundary: int
    place: int
    separator: int
    word: int


class Draft:
    """A reply under way: `cuts` holds boundaries, those of the first choices for good, the others as guessed."""

    def __init__(self, encoded: Encoded, separator: tuple[int, ...]) -> None:
        self._encoded = encoded
        self._separator = separator
        self._read = self._settled = 0
        self.cuts: set[int] = set()
        self._lay_out()

    @property
    def unread(self) -> list[int]:
        """Return the tokens that follow those read for good; none where all is settled."""
        return self._tokens[self._read :]

    def choices(self, count: int) -> list[Choice]:
        """Return what is decided while the next `count` tokens are read; places count from there."""
        ahead = (choice._replace(place=choice.place - self._read) for choice in self._choices[self._settled :])
        return [choice for choice in ahead if choice.place < count]

    def correct(self, count: int, decided: Sequence[bool]) -> int:
        """Take over the decisions on `choices(count)`; return how many of those tokens were read in vain."""
        ahead = self.choices(count)
        differ = [number for number, cut in enumerate(decided) if cut != (ahead[number].boundary in self.cuts)]
        good = ahead[differ[0]].place + 1 if differ else count
        self.cuts ^= {ahead[number].boundary for number in differ}
        self._settled += differ[0] + 1 if differ else len(ahead)
        self._read += good
        self._lay_out()
        return count - good

    def _lay_out(self) -> None:
        tokens, choices = [*self._encoded.head, *self._encoded.pieces[0]], []
        for boundary, word in enumerate(self._encoded.pieces[1:]):
            shared = _shared(self._separator, word)
            # Where a word begins as the separator does, or the other way round, there is nothing to choose: no cut.
            if shared < min(len(self._separator), len(word)):
                place = len(tokens) + shared - 1
                choices.append(Choice(boundary, place, self._separator[shared], word[shared]))
            tokens += [*self._separator, *word] if boundary in self.cuts else word
        # What stands behind the last choice changes nothing.
        self._tokens = tokens[: choices[-1].place + 1] if choices else []
        self._choices = choices


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
