"""A manifest of segmented data → the lines that people read after `spt preprocess`."""

from collections.abc import Mapping
from typing import Any

_LONG = 6
"""Words from which units are counted together."""


def summary_line(manifest: Mapping[str, Any]) -> str:
    """Return the counts in one line."""
    counts = manifest["counts"]
    words = sum(int(length) * units for length, units in counts["words_per_unit"].items())
    parts = [
        f"{counts['records']:,} records, {counts['sentences']:,} sentences, {counts['units']:,} units",
        f"{words / counts['units']:.1f} words a unit",
        rejections(counts["rejects"]) or "none rejected",
    ]
    return ", ".join(parts)


def details(manifest: Mapping[str, Any]) -> list[str]:
    """Return the lines below it: lengths, names, and fallbacks where there were any."""
    counts = manifest["counts"]
    lines = [f"  words a unit: {_lengths(counts['words_per_unit'], counts['units'])}"]
    if counts.get("single"):
        lines.append(f"  one unit: {counts['single']:,} of {counts['records']:,} records, which no order changes")
    entities = counts["entities"]
    if entities.get("seen"):
        seen = entities["seen"]
        whole, alone = (f"{entities[kind] / seen:.1%} {kind}" for kind in ("whole", "alone"))
        lines.append(f"  names: {seen:,} seen, {whole}, {alone} in their unit")
    if counts.get("augmented"):
        lines.append(f"  augment: {_listed(counts['augmented'])}")
    if counts["fallbacks"]:
        lines.append(f"  cut by a fallback: {_listed(counts['fallbacks'])}")
    return lines


def rejections(counts: Mapping[str, int]) -> str:
    """Return how many rows were rejected, by reason, or nothing."""
    return f"{sum(counts.values()):,} rejected ({_listed(counts)})" if counts else ""


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in sorted(counts.items()))


def _lengths(words_per_unit: Mapping[str, int], units: int) -> str:
    shares = dict.fromkeys(range(1, _LONG + 1), 0)
    for length, count in words_per_unit.items():
        shares[min(max(int(length), 1), _LONG)] += count
    names = {length: str(length) for length in shares} | {_LONG: f"{_LONG}+"}
    return ", ".join(f"{names[length]}: {count / units:.0%}" for length, count in shares.items() if count)
