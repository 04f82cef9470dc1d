"""What a server replies → text that a file can hold, and the nats of a candidate's tokens.

In: a choice of a completion, as plain JSON. Out: text, numbers. Trade-off: a reply that does not show which tokens are
the candidate's is refused whole, since a guess would be a wrong figure that nobody sees.
"""

from math import isfinite

from spt.assistant.client import Choice


def candidate_nats(choice: Choice, text: str, start: int) -> list[float]:
    """Return the nats of the tokens of an echoed text that end after the character `start`.

    The token that the server wrote itself behind the text does not count, nor does a beginning token before it. Raises
    ValueError, or what a missing field raises, where the tokens do not show where they stand or have no finite value.

        text      The sea is wide|           start = 10
        tokens    <s> The  sea  is  wide .   the last one is the server's own
        offsets   0   3   6    10  13   18   those of a server that counts its <s>
    """
    found = choice["logprobs"]
    tokens, nats, offsets = found["tokens"], found["token_logprobs"], found["text_offset"]
    shift = 0 if text.startswith(tokens[0]) else len(tokens[0])
    starts = [offset - shift for offset in offsets]
    ends = [*starts[1:], starts[-1] + len(tokens[-1])]
    if len(text) not in ends or starts != sorted(starts):
        raise ValueError("the tokens are not those of the text")
    counted = [float(value) for value, begin, end in zip(nats, starts, ends, strict=True) if start < end <= len(text)]
    if not counted or not all(map(isfinite, counted)):
        raise ValueError("no token belongs to the candidate, or one has no number")
    return counted


def encodable(text: str) -> str:
    """Return a text with U+FFFD for half a surrogate pair, which JSON can bring in and no file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
