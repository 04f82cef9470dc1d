"""Segmentation → Ordering: the units of a record in the order drawn for one epoch.

In: a segmentation, the orders' weights, a seed and an epoch. Out: the permuted text, and where each piece of it stood.
Units are those of the segmentation, but for the segmenters in `DRAWN`, whose units are drawn here too. What is drawn is
a pure function of (seed, epoch, record id), so that workers, ranks and resumed runs agree without talking. Trade-off: a
generator is made for every record and epoch (some five microseconds).
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from spt.config import Permute, Segment
from spt.records import Ordering, Piece, Segmentation, TokenOrder, writes_no_spaces


def _original(n: int, generator: Random) -> list[int]:
    return list(range(n))


def _reversed(n: int, generator: Random) -> list[int]:
    return list(range(n - 1, -1, -1))


def _shuffled(n: int, generator: Random) -> list[int]:
    """Uniform over all orders but the original one."""
    permutation = list(range(n))
    while n > 1 and permutation == sorted(permutation):
        generator.shuffle(permutation)
    return permutation


def _rotated(n: int, generator: Random) -> list[int]:
    """Cut before a random unit, the two parts swapped."""
    cut = generator.randrange(1, n) if n > 1 else 0
    return [*range(cut, n), *range(cut)]


ORDERS: Mapping[str, Callable[[int, Random], list[int]]] = {
    "original": _original,
    "reversed": _reversed,
    "shuffled": _shuffled,
    "rotated": _rotated,
}
"""Each order's permutation of `n` units: entry `p` is the unit that stands at place `p`."""


def generator_for(seed: int, epoch: int, record_id: str) -> Random:
    """Return the generator of one record in one epoch; equal arguments give equal streams on every machine."""
    digest = hashlib.blake2b(f"{seed}:{epoch}:{record_id}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(digest, "big"))  # noqa: S311  # nothing secret is drawn


def draw_ordering(segmentation: Segmentation, settings: Permute, units: Segment, *, seed: int, epoch: int) -> Ordering:
    """Return the ordering of a record in an epoch; `units` says how its units are drawn, where they are."""
    generator = generator_for(seed, epoch, segmentation.id)
    names = [name for name in ORDERS if name in settings.orders]
    weights = [settings.orders[name] for name in names]
    (order,) = generator.choices(names, weights)
    return arrange(segmentation, order, generator, settings, units)


def arrange(segmentation: Segmentation, order: str, generator: Random, settings: Permute, units: Segment) -> Ordering:
    """Return a record in one order: its units, or those that its segmenter draws anew."""
    draw = DRAWN.get(segmentation.segmenter, _stored)
    return draw(segmentation, order, generator, settings, units)


def _stored(segmentation: Segmentation, order: str, generator: Random, settings: Permute, units: Segment) -> Ordering:
    return permute(segmentation, order, generator, max_units=settings.max_units, delimiter=settings.delimiter)


def _random(segmentation: Segmentation, order: str, generator: Random, settings: Permute, units: Segment) -> Ordering:
    """Draw units of 1 to `max_words` of the stored words; none reaches over the end of a sentence."""
    sentences = set(segmentation.sentences)
    kept: list[int] = []
    left = generator.randint(1, units.max_words)
    for cut in segmentation.cuts:
        left -= 1
        if left == 0 or cut in sentences:
            kept.append(cut)
            left = generator.randint(1, units.max_words)
    return _stored(replace(segmentation, cuts=tuple(kept)), order, generator, settings, units)


def _tokens(segmentation: Segmentation, order: str, generator: Random, settings: Permute, units: Segment) -> Ordering:
    """Leave the text as it is, and its tokens to the encoder."""
    whole = permute(segmentation, "original", generator)
    sentences, seed = segmentation.sentences, generator.getrandbits(64)
    return replace(
        whole, order=order, tokens=TokenOrder(order, seed, sentences, settings.max_units, settings.delimiter)
    )


Draw = Callable[[Segmentation, str, Random, Permute, Segment], Ordering]
DRAWN: Mapping[str, Draw] = {"random": _random, "token": _tokens}
"""Segmenters whose units are drawn anew each epoch, and how; those of all others are stored."""


def permute_tokens(tokens: TokenOrder, ends: Sequence[int]) -> list[int]:
    """Return the permutation of the tokens of a text; `ends` are the characters where each ends."""
    starts = sorted({bisect_right(ends, offset) for offset in tokens.sentences})
    generator = Random(tokens.seed)  # noqa: S311  # nothing secret is drawn
    return _permutation(len(ends), starts, tokens.order, generator, tokens.max_units)


def permute(
    segmentation: Segmentation, order: str, generator: Random, *, max_units: int = 32, delimiter: str | None = None
) -> Ordering:
    """Return the units of a segmentation in one order.

    Units move within windows: the whole record up to `max_units`, a longer one in groups of whole sentences. The
    result's `order` is `original` where nothing moved. Source: Guo et al. 2403.00758, section 4 (windows and gaps are
    ours).
    """
    cuts, n = segmentation.cuts, len(segmentation.cuts) + 1
    # The first sentence starts at 0, each other one at a cut.
    sentences = [bisect_right(cuts, offset) for offset in segmentation.sentences] if n > max_units else ()
    permutation = _permutation(n, sentences, order, generator, max_units)
    moved = permutation != list(range(n))
    text, pieces = _lay_out(segmentation, permutation, delimiter)
    return Ordering(
        id=segmentation.id,
        order=order if moved else "original",
        permutation=tuple(permutation),
        text=text,
        pieces=pieces,
        completion_start=segmentation.completion_start,
    )


def _permutation(n: int, sentences: Sequence[int], order: str, generator: Random, max_units: int) -> list[int]:
    permutation: list[int] = []
    for start, stop in _windows(n, sentences, max_units):
        permutation += [start + unit for unit in ORDERS[order](stop - start, generator)]
    return permutation


def _windows(n: int, sentences: Sequence[int], max_units: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of `n` units, `sentences` of which start one; a longer sentence is a window of its own."""
    if n <= max_units:
        yield 0, n
        return
    start = 0
    for previous, stop in pairwise([*sentences, n]):
        if stop - start > max_units and previous > start:
            yield start, previous
            start = previous
    yield start, n


def _lay_out(
    segmentation: Segmentation, permutation: list[int], delimiter: str | None
) -> tuple[str, tuple[Piece, ...]]:
    """Put the units into the gaps: white space keeps its place, the units move between it.

    text    Ann Lee | directed | The Sea.        permutation 2 1 0
    out     The Sea. | directed | Ann Lee        gaps "", " ", " ", ""
    """
    text = segmentation.text
    cores = [_core(text, start, end) for start, end in segmentation.spans]
    edges = [0, *(end for _, end in cores)]
    gaps = [text[edge:start] for edge, (start, _) in zip(edges, cores, strict=False)]
    parts: list[str] = []
    pieces: list[Piece] = []
    position = 0
    for part, source in _parts(text, cores, edges, gaps, permutation, delimiter):
        if part:
            parts.append(part)
            pieces.append(Piece(position, position := position + len(part), source))
    return "".join(parts), tuple(pieces)


def _parts(
    text: str,
    cores: Sequence[tuple[int, int]],
    edges: Sequence[int],
    gaps: Sequence[str],
    permutation: Sequence[int],
    delimiter: str | None,
) -> Iterator[tuple[str, int | None]]:
    """Yield each part of the permuted text, and where it stood; some are empty."""
    last, before = "", -1
    for place, unit in enumerate(permutation):
        gap, (start, end) = gaps[place], cores[unit]
        core = text[start:end]
        yield gap, edges[place]
        last = gap[-1:] or last
        if place and before == unit - 1:
            # Neighbours as before, but the gap at their new place may be empty where theirs was not.
            if gaps[unit] and last and not last.isspace():
                yield " ", None
        elif place:
            yield from _seam(last, gap, core, delimiter)
        yield core, start
        last, before = core[-1:] or last, unit
    yield text[edges[-1] :], edges[-1]


def _seam(last: str, gap: str, after: str, delimiter: str | None) -> Iterator[tuple[str, int | None]]:
    """Yield what stands between two units that did not follow each other, after the gap between them."""
    if last and after and not last.isspace() and not writes_no_spaces(last) and not writes_no_spaces(after[0]):
        space = " "
    else:
        space = ""
    yield space, None
    if delimiter is not None:
        yield delimiter, None
        yield gap or space, None


def _core(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of a unit without the white space around it."""
    core = text[start:end].strip()
    first = text.index(core, start)  # what stands before it is white space, with which it does not begin
    return first, first + len(core)
