"""Seeds and facts → means with intervals: the chance of both.

               fact 1   fact 2   fact 3
    seed 0        1        0        1        A draw takes as many seeds, and as many facts, with replacement; a fact
    seed 1        1        0        0        that is drawn is drawn in every seed: all of them were asked the same.

In: totals of facts, a row a seed. Out: intervals, the same whatever the order of what came in; everything over the
same seeds and facts comes from the same draws. Trade-off: a bootstrap of three seeds can only show the three, so it
understates what a fourth might do; with one seed the interval is over facts alone.
Source: Owen (2007), the pigeonhole bootstrap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spt.statistics import DRAWS
from spt.statistics.bootstrap import Bounds, drawn_times, ends
from spt.statistics.facts import FactTotals, Floats, shared

Figure = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Grid(FactTotals):
    """Totals of each fact under each seed: [seeds, facts]; 0 of 0 where a seed lacks a fact."""

    seeds: tuple[int, ...]

    @property
    def means(self) -> Floats:
        """Return the mean of each fact over the seeds: [facts]."""
        return np.asarray(self.sums.sum(axis=0) / self.counts.sum(axis=0), dtype=np.float64)

    @property
    def cells(self) -> Floats:
        """Return the mean of each fact under each seed: [seeds, facts]; not a number where there is none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sums / self.counts, dtype=np.float64)

    def of_seeds(self, seeds: set[int]) -> "Grid":
        """Return the totals under some of the seeds, in the grid's order."""
        if seeds.issuperset(self.seeds):
            return self
        rows = np.array([seed in seeds for seed in self.seeds], dtype=bool)
        kept = tuple(seed for seed in self.seeds if seed in seeds)
        return replace(self, seeds=kept, sums=self.sums[rows], counts=self.counts[rows])


def make_grid(by_seed: Mapping[int, FactTotals]) -> Grid | None:
    """Return the totals side by side, or None where there are none."""
    by_seed = {seed: totals for seed, totals in sorted(by_seed.items()) if totals.facts}
    facts = sorted({fact for totals in by_seed.values() for fact in totals.facts})
    if not facts:
        return None
    places = {fact: place for place, fact in enumerate(facts)}
    sums, counts = np.zeros((2, len(by_seed), len(facts)))
    for row, totals in enumerate(by_seed.values()):
        columns = [places[fact] for fact in totals.facts]
        sums[row, columns], counts[row, columns] = totals.sums, totals.counts
    return Grid(tuple(facts), sums, counts, tuple(by_seed))


def common(left: Grid, right: Grid) -> tuple[Grid, Grid] | None:
    """Return both with only the seeds and facts that stand in both, or None where there are none."""
    seeds = set(left.seeds) & set(right.seeds)
    both = shared(left.of_seeds(seeds), right.of_seeds(seeds))
    return both if seeds and both[0].facts else None


def draw_means(grids: Sequence[Grid], *, draws: int = DRAWS, seed: int = 0) -> list[Floats]:
    """Return each grid's mean in every draw: [draws]."""
    found: list[Floats] = [np.empty(0)] * len(grids)
    owners: dict[tuple[Any, Any], list[int]] = {}
    for number, grid in enumerate(grids):
        owners.setdefault((grid.seeds, grid.facts), []).append(number)
    for (seeds, facts), numbers in owners.items():
        tables = np.stack([table for number in numbers for table in (grids[number].sums, grids[number].counts)])
        means = _means(tables, _drawn_seeds(len(seeds), draws, seed), len(facts), seed)
        for place, number in enumerate(numbers):
            found[number] = means[:, place]
    return found


def _drawn_seeds(count: int, draws: int, seed: int) -> Floats:
    """Return how often each seed is drawn: [draws, seeds]."""
    drawn = np.random.default_rng([seed, 2]).integers(count, size=(draws, count))
    return np.asarray((drawn[:, :, None] == np.arange(count)).sum(axis=1), dtype=np.float64)


def _means(tables: Floats, seeds: Floats, facts: int, seed: int) -> Floats:
    """Return means from sums and counts in turn: [2 x grids, seeds, facts] -> [draws, grids]."""
    columns = tables.reshape(-1, facts).T
    means = np.empty((len(seeds), len(tables) // 2))
    for block, times in drawn_times(facts, len(seeds), seed):
        by_seed = (times @ columns).reshape(len(times), len(tables), -1)
        totals = (by_seed * seeds[block][:, None, :]).sum(axis=2)
        with np.errstate(invalid="ignore"):  # a draw that took nothing has no mean
            means[block] = totals[:, ::2] / totals[:, 1::2]
    return means


def figure(grid: Grid, drawn: Floats, bounds: Bounds) -> Figure:
    """Return {"value", "low", "high"} of a grid."""
    return interval(grid.value, grid.cells, drawn, bounds)


def interval(value: float, cells: Floats, drawn: Floats, bounds: Bounds) -> Figure:
    """Return a value with the interval of its draws; `cells`: [seeds, facts] of what it is the mean of.

    Where all of them are alike the draws have no width: the interval is then exact, over facts.
    """
    known = cells[~np.isnan(cells)]
    alike = np.ptp(known) == 0
    of_facts = np.full(cells.shape[1], known[0]) if alike else known
    low, high = ends(value, of_facts, drawn[~np.isnan(drawn)], bounds)
    return {"value": value, "low": low, "high": high}


def share(parts: Sequence[tuple[float, int]], *, draws: int = DRAWS, seed: int = 0) -> Figure:
    """Return a share of samples that each seed drew for itself, from (share, samples) of each seed."""
    shares, sizes = (np.array(column, dtype=np.float64) for column in zip(*parts, strict=True))
    taken = _drawn_seeds(len(parts), draws, seed) * sizes
    hits = np.random.default_rng([seed, 3]).binomial(taken.astype(np.int64), shares)
    drawn = hits.sum(axis=1) / taken.sum(axis=1)
    value, n = float((shares * sizes).sum() / sizes.sum()), int(sizes.sum())
    # Every sample is 0 or 1: alike only where all of them are.
    samples = np.full(n, value) if value in (0.0, 1.0) else np.array([0.0, 1.0])
    low, high = ends(value, samples, drawn, (0.0, 1.0))
    return {"value": value, "low": low, "high": high, "n": n}


def spread(values: Sequence[float | None]) -> Figure | None:
    """Return the mean of seeds and their range, or None where there is no value."""
    known = [value for value in values if value is not None]
    return {"value": sum(known) / len(known), "low": min(known), "high": max(known)} if known else None
