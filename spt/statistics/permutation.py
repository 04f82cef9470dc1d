"""Paired differences → p-values.

In: differences of facts. Out: two-sided p-values of a sign-flip permutation test, and Holm's correction of many.
Trade-off: few facts are tested exactly, over every pattern of signs; many by chance, over seeded patterns that all
metrics share, so that a p-value is then never below 1 / (draws + 1).
"""

from collections.abc import Sequence

import numpy as np

from spt.statistics.facts import Floats

EXACT = 16
"""Facts up to which every pattern of signs is tried."""
_BLOCK = 2_000_000  # signs at a time: bounds memory to tens of MB


def sign_flip(differences: Sequence[Floats], *, draws: int, seed: int = 0) -> list[float]:
    """Return the p-value of each list of facts' differences: how often chance signs give a sum as far from 0.

    Lists of the same length are tested with the same signs; an empty one has p-value 1.
    """
    found = [1.0] * len(differences)
    for count in {len(row) for row in differences} - {0}:
        numbers = [number for number, row in enumerate(differences) if len(row) == count]
        rows = np.stack([differences[number] for number in numbers], axis=1)
        for number, p_value in zip(numbers, _p_values(rows, draws, seed), strict=True):
            found[number] = float(p_value)
    return found


def _p_values(rows: Floats, draws: int, seed: int) -> Floats:
    """Return the p-value of each column: [facts, columns] -> [columns]."""
    count, exact = len(rows), len(rows) <= EXACT
    total = rows.sum(axis=0)
    # Sums of equal worth may differ by rounding.
    observed = np.abs(total) - 1e-9 * np.abs(rows).sum(axis=0)
    patterns = 2**count if exact else draws
    generator = np.random.default_rng([seed, 1])
    block = max(1, _BLOCK // count)
    as_far = np.zeros(rows.shape[1], dtype=np.int64)
    for start in range(0, patterns, block):
        size = min(block, patterns - start)
        if exact:
            positive = np.asarray((np.arange(start, start + size)[:, None] >> np.arange(count)) & 1, dtype=np.float64)
        else:
            bits = generator.integers(256, size=(size, -(-count // 8)), dtype=np.uint8)
            positive = np.unpackbits(bits, axis=1, count=count).astype(np.float64)
        as_far += (np.abs(2 * (positive @ rows) - total) >= observed).sum(axis=0)
    return as_far / patterns if exact else (as_far + 1) / (draws + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number: the chance of any false finding among them stays below each.

    Source: Holm (1979), a step-down of Bonferroni.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(np.asarray(p_values, dtype=np.float64)[order] * factors))
    corrected = np.empty(len(order))
    corrected[order] = stepped
    return [float(value) for value in corrected]
