"""Totals of facts → means with intervals, and differences with theirs.

In: sums and counts of facts. Out: intervals, the same whatever the order of what came in. All means over one set of
facts, of any metric, direction or run, come from the same draws. Trade-off: drawn facts are counted and the counts
multiplied with all columns at once. That is as fast for twenty metrics as for one, for a block of counts in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from spt.statistics.facts import FactTotals, Floats, by_fact, shared
from spt.statistics.permutation import sign_flip

DRAWS = 10_000
TAIL = 0.025
"""What a 95% interval leaves out on either side."""
_BLOCK = 500_000  # counts at a time: a few MB
MOST_NATS = 230.0
"""Nats a token whose exp, 1e100, is the most that a report holds; a model that training drove apart has more."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95% interval; an end that nothing bounds is None."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """A paired difference with its 95% interval, the p-value of a paired test, and the facts that it is over."""

    value: float
    low: float | None
    high: float | None
    p_value: float
    n_facts: int


Bounds = tuple[float, float]
Pair = tuple[FactTotals, FactTotals]


def bootstrap_mean(
    values: Sequence[float],
    fact_ids: Sequence[str],
    *,
    bounds: Bounds = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Return the mean of values within bounds, with a percentile bootstrap interval over facts."""
    assert len(values) > 0
    return intervals([by_fact(values, fact_ids)], [bounds], draws=draws, seed=seed)[0]


def intervals(
    sides: Sequence[FactTotals], bounds: Sequence[Bounds], *, draws: int = DRAWS, seed: int = 0
) -> list[Interval]:
    """Return the mean of each side with its percentile bootstrap interval.

    Where all facts are alike (all right, all wrong, or one fact) a bootstrap has no width: the interval is then exact,
    the Clopper-Pearson interval of facts at 0 and 1.
    """
    found = []
    for side, limits, drawn in zip(sides, bounds, _drawn_means(sides, draws, seed), strict=True):
        found.append(Interval(side.value, *ends(side.value, side.means, drawn, limits)))
    return found


def gaps(pairs: Sequence[Pair], bounds: Sequence[Bounds], *, draws: int = DRAWS, seed: int = 0) -> list[Gap | None]:
    """Return the first minus the second of each pair over the facts that both have (None: there is no such fact).

    The bootstrap draws a fact with the questions of both sides; the p-value is two-sided, from a sign-flip permutation
    test on the facts' differences of means. `bounds` are those of the values.
    """
    paired = [shared(*pair) for pair in pairs]
    drawn = _drawn_means([side for pair in paired for side in pair], draws, seed)
    p_values = sign_flip([left.means - right.means for left, right in paired], draws=draws, seed=seed)
    found: list[Gap | None] = []
    for number, (left, right) in enumerate(paired):
        if not left.facts:
            found.append(None)
            continue
        value, width = left.value - right.value, bounds[number][1] - bounds[number][0]
        low, high = ends(value, left.means - right.means, drawn[2 * number] - drawn[2 * number + 1], (-width, width))
        found.append(Gap(value, low, high, p_values[number], len(left.facts)))
    return found


def ends(value: float, of_facts: Floats, drawn: Floats, bounds: Bounds) -> tuple[float | None, float | None]:
    """Return the ends of the 95% interval of a value, from what was drawn; exact where all facts are alike."""
    if np.ptp(of_facts) > 0:
        low, high = np.quantile(drawn, [TAIL, 1 - TAIL])
        return float(low), float(high)
    # n facts were all alike. With 97.5% confidence at most this share of all facts is different, and those may lie
    # anywhere within the bounds. At a rate of 0 or 1 this is Clopper and Pearson's interval.
    different = 1 - TAIL ** (1 / len(of_facts))
    low, high = (value + different * (bound - value) for bound in bounds)
    return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)


def exponential(nats: float) -> float:
    """Return exp of nats a token, a perplexity or the ratio of two, at most that of MOST_NATS."""
    return exp(min(nats, MOST_NATS))


def exponentials(figure: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the exponential of each number of a figure."""
    return {name: None if nats is None else exponential(nats) for name, nats in figure.items()}


def _drawn_means(sides: Sequence[FactTotals], draws: int, seed: int) -> list[Floats]:
    """Return each side's mean in every draw: [draws]. Sides over the same facts share their draws."""
    means: list[Floats] = [np.empty(0)] * len(sides)
    owners: dict[tuple[str, ...], list[int]] = {}
    for number, side in enumerate(sides):
        owners.setdefault(side.facts, []).append(number)
    for facts, numbers in owners.items():
        if not facts:
            continue
        columns = np.stack([column for number in numbers for column in (sides[number].sums, sides[number].counts)], 1)
        totals = _resample(columns, draws, seed)
        for place, number in enumerate(numbers):
            means[number] = totals[:, 2 * place] / totals[:, 2 * place + 1]
    return means


def _resample(rows: Floats, draws: int, seed: int) -> Floats:
    """Return the column sums of `draws` resamples of the rows: [draws, columns]."""
    totals = np.empty((draws, rows.shape[1]))
    for drawn, times in drawn_times(len(rows), draws, seed):
        totals[drawn] = times @ rows
    return totals


def drawn_times(count: int, draws: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Yield how often each of `count` rows is drawn, a block of draws at a time: [block, count].

    The same count, draws and seed give the same.
    """
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // count)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        # One count of the whole block: each draw has places of its own.
        drawn = generator.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        yield slice(start, start + size), times.astype(np.float64)
