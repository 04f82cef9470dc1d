"""Segmentation → Ordering: the units of a record in the order drawn for one epoch.

In: a segmentation, the orders' weights, a seed and an epoch. Out: the permuted text, where each piece of it stood, and
the context before it that an augmenter draws. Units are those of the segmentation, but for the segmenters in `DRAWN`,
whose units are drawn here too. What is drawn is a pure function of (seed, epoch, record id), so that workers, ranks and
resumed runs agree without talking. Trade-off: a generator is made for every record and epoch (some five microseconds).
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from spt.augment import draw_context
from spt.config import Augment, Permute, Segment
from spt.permute.layout import lay_out
from spt.permute.orders import ORDERS, Drawn
from spt.records import Ordering, Segmentation, TokenOrder


def generator_for(seed: int, epoch: int, record_id: str) -> Random:
    """Return the generator of one record in one epoch; equal arguments give equal streams on every machine."""
    digest = hashlib.blake2b(f"{seed}:{epoch}:{record_id}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(digest, "big"))  # noqa: S311  # nothing secret is drawn


def draw_ordering(
    segmentation: Segmentation,
    settings: Permute,
    units: Segment,
    *,
    seed: int,
    epoch: int,
    augment: Sequence[Augment] = (),
) -> Ordering:
    """Return the ordering of a record in an epoch.

    `units` says how its units are drawn, `augment` what stands before it, where they are drawn anew.
    """
    generator = generator_for(seed, epoch, segmentation.id)
    weights = {str(name): weight for name, weight in settings.orders_in(epoch).items()}
    names = [name for name in ORDERS if name in weights]
    (order,) = generator.choices(names, [weights[name] for name in names])
    return draw_context(arrange(segmentation, order, generator, settings, units), augment, generator)


def arrange(segmentation: Segmentation, order: str, generator: Random, settings: Permute, units: Segment) -> Ordering:
    """Return a record in one order: its units, or those that its segmenter draws anew."""
    draw = DRAWN.get(segmentation.segmenter, _stored)
    return draw(segmentation, order, generator, settings, units)


def _stored(segmentation: Segmentation, order: str, generator: Random, settings: Permute, units: Segment) -> Ordering:
    return permute(
        segmentation,
        order,
        generator,
        max_units=settings.max_units,
        delimiter=settings.delimiter,
        sentinels=settings.fim_sentinels,
    )


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
    return _permutation(len(ends), starts, tokens.order, generator, tokens.max_units).permutation


def permute(
    segmentation: Segmentation,
    order: str,
    generator: Random,
    *,
    max_units: int = 32,
    delimiter: str | None = None,
    sentinels: tuple[str, str, str] = Permute().fim_sentinels,
) -> Ordering:
    """Return the units of a segmentation in one order.

    Units move within windows: the whole record up to `max_units`, a longer one in groups of whole sentences. The
    result's `order` is `original` where nothing moved. Source: Guo et al. 2403.00758, section 4 (windows and gaps are
    ours).
    """
    cuts, n = segmentation.cuts, len(segmentation.cuts) + 1
    # The first sentence starts at 0, each other one at a cut.
    sentences = [bisect_right(cuts, offset) for offset in segmentation.sentences] if n > max_units else ()
    drawn = _permutation(n, sentences, order, generator, max_units)
    moved = drawn.permutation != list(range(n))
    text, pieces = lay_out(segmentation, drawn, delimiter, sentinels)
    return Ordering(
        id=segmentation.id,
        order=order if moved else "original",
        permutation=tuple(drawn.permutation),
        text=text,
        pieces=pieces,
        completion_start=segmentation.completion_start,
    )


def _permutation(n: int, sentences: Sequence[int], order: str, generator: Random, max_units: int) -> Drawn:
    permutation: list[int] = []
    signs: list[tuple[int, int]] = []
    for start, stop in _windows(n, sentences, max_units):
        drawn = ORDERS[order](stop - start, generator)
        permutation += [start + unit for unit in drawn.permutation]
        signs += [(start + place, section) for place, section in drawn.signs]
    return Drawn(permutation, tuple(signs))


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
