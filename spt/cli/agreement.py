"""The table of `spt preprocess --compare`."""

from pathlib import Path
from typing import Any

from rich.table import Table

from spt.cli.options import console, emit


def compare(a: Path, b: Path, *, as_json: bool) -> None:
    """Print how well one segmentation agrees with another."""
    from spt.preprocess import compare as compare_files

    result = compare_files(a, b)
    emit(result, as_json=as_json)
    if not as_json:
        _print(result, a, b)


def _print(result: dict[str, Any], a: Path, b: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("A", "B", "precision", "recall", "F1"):
        table.add_column(name, justify="left" if len(name) == 1 else "right")
    for row in result["agreements"]:
        table.add_row(row["a"], row["b"], *(f"{row[rate]:.3f}" for rate in ("precision", "recall", "f1")))
    rates = [row["f1"] for row in result["agreements"]]
    if len(rates) > 1:
        table.add_row("mean", "", "", "", f"{sum(rates) / len(rates):.3f}")
    console().print(table)
    console().print(f"{result['texts']:,} texts; A: {a}, B: {b}", markup=False, soft_wrap=True)
    for side, counts in result["left_out"].items():
        if counts:
            listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
            console().print(f"{side.upper()}: {listed}", markup=False, soft_wrap=True)
