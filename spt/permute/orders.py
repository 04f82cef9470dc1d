"""The orders: how `n` units may be arranged.

In: a number of units, a generator. Out: a permutation, and for the order `fim` where its sections begin. Trade-off: an
order knows nothing of text, so that none can depend on what the units say.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

PREFIX, SUFFIX, MIDDLE = range(3)
"""The sections of the order `fim`, as places in `permute.fim_sentinels`."""


class Drawn(NamedTuple):
    """Entry `p` of a permutation is the unit at place `p`; `signs` are (place, section that begins there)."""

    permutation: list[int]
    signs: tuple[tuple[int, int], ...] = ()


def _original(n: int, generator: Random) -> Drawn:
    return Drawn(list(range(n)))


def _reversed(n: int, generator: Random) -> Drawn:
    return Drawn(list(range(n - 1, -1, -1)))


def _shuffled(n: int, generator: Random) -> Drawn:
    """Uniform over all orders but the original one."""
    permutation = list(range(n))
    while n > 1 and permutation == sorted(permutation):
        generator.shuffle(permutation)
    return Drawn(permutation)


def _rotated(n: int, generator: Random) -> Drawn:
    """Cut before a random unit, the two parts swapped."""
    cut = generator.randrange(1, n) if n > 1 else 0
    return Drawn([*range(cut, n), *range(cut)])


def _fim(n: int, generator: Random) -> Drawn:
    """Suffix, prefix, middle, cut before two random units: a middle and a suffix there always are.

    Source: Bavarian et al. 2207.14255, section 3 (SPM, a sentinel before each section; all of it is learned). There
    the cuts are characters, here they are starts of units.
    """
    if n < 2:
        return Drawn(list(range(n)))
    middle, suffix = sorted(generator.sample(range(n), 2))
    prefix = n - suffix
    signs = ((0, SUFFIX), (prefix, PREFIX), (prefix + middle, MIDDLE))
    return Drawn([*range(suffix, n), *range(suffix)], signs)


ORDERS: Mapping[str, Callable[[int, Random], Drawn]] = {
    "original": _original,
    "reversed": _reversed,
    "shuffled": _shuffled,
    "rotated": _rotated,
    "fim": _fim,
}
"""How each order arranges `n` units."""
