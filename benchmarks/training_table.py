"""The table of benchmarks/training.py: what must be reached, and what was.

In: what each program found, one entry a round. Out: medians over rounds of ratios within a round; on a busy machine the
ratios in CPU time are the ones to trust. Trade-off: a figure whose program did not run says "not run" and nothing else.
"""

import statistics
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

Found = dict[str, list[dict]]
MIB = 2**20
FIGURES = ("tokens_a_second", "peak", "own_peak", "seconds_a_step", "cpu_a_step")


def ratio(found: Found, above: str, below: str, key: str) -> tuple[float, str] | None:
    """Return the median over rounds of one program's figure over another's, and each round's."""
    if not found.get(above) or not found.get(below):
        return None
    rounds = [a[key] / b[key] for a, b in zip(found[above], found[below], strict=True)]
    return statistics.median(rounds), " ".join(f"{value:.2f}" for value in rounds)


RATIOS = (
    ("tokens/s against SFTTrainer, both padded", "spt", "trl", "tokens_a_second", ">= 1.6"),
    ("  in CPU time a step, workers left out", "trl", "spt", "cpu_a_step", ""),
    ("  against SFTTrainer with group_by_length", "spt", "trl, sorted", "tokens_a_second", ""),
    ("  against SFTTrainer's defaults (checkpointing)", "spt", "trl, its defaults", "tokens_a_second", ""),
    ("tokens/s against SFTTrainer, both packed", "spt, packed", "trl, packed", "tokens_a_second", ">= 1.0"),
    ("tokens/s packed against padded", "spt, packed", "spt", "tokens_a_second", ">= 1.0"),
    ("peak memory packed against padded", "spt, packed", "spt", "peak", "<= 1.0"),
    ("tokens/s against a bare loop, same batches", "spt", "bare", "tokens_a_second", ">= 0.97"),
    ("  in CPU time a step, workers left out", "bare", "spt", "cpu_a_step", ""),
    ("  against a bare loop with spt's objective", "spt", "bare, own loss", "tokens_a_second", ""),
    ("peak memory against SFTTrainer, both padded", "spt", "trl", "peak", "<= 0.8"),
    ("  workers left out", "spt", "trl", "own_peak", ""),
    ("  against SFTTrainer's defaults (checkpointing)", "spt", "trl, its defaults", "peak", ""),
    ("  both packed", "spt, packed", "trl, packed", "peak", ""),
    ("two processes against one, same global batch", "spt", "spt, two", "seconds_a_step", ">= 1.8"),
    ("FSDP2 on one device against none", "spt, fsdp2", "spt", "tokens_a_second", ""),
)
SHARES = (
    ("step time spent on data, tiny model", "tiny", "waited", "<= 2%"),
    ("  waited for, with a worker that prepares steps", "tiny, one worker", "waited", ""),
    ("share of the chip's matrix rate, padded", "spt", "mfu", ""),
    ("  packed", "spt, packed", "mfu", ""),
    ("  FSDP2", "spt, fsdp2", "mfu", ""),
)


def rows(found: Found) -> Iterator[tuple[str, str, str, str]]:
    """Yield (what, target, median, each round)."""
    for what, above, below, key, target in RATIOS:
        measured = ratio(found, above, below, key)
        yield what, target, *((f"{measured[0]:.2f}", measured[1]) if measured else ("not run", ""))
    for what, name, key, target in SHARES:
        values = [one[key] for one in found.get(name, []) if one.get(key) is not None]
        each = " ".join(f"{value:.1%}" for value in values)
        yield what, target, f"{statistics.median(values):.1%}" if values else "not run", each
    yield "losses: greatest difference from the bare loop", "", *difference(found)


def difference(found: Found) -> tuple[str, str]:
    """Return the greatest relative difference of the losses of spt and a bare loop: both learned the same."""
    if not found.get("spt") or not found.get("bare"):
        return "not run", ""
    pairs = zip(found["spt"][0]["losses"], found["bare"][0]["losses"], strict=True)
    return f"{max(abs(ours - theirs) / theirs for ours, theirs in pairs):.1e}", ""


def print_results(found: Found, title: str) -> None:
    """Print what each program did, and the table of targets."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    absolute = Table("program", "tokens/s", "MiB", "of it workers", "ms a step", "CPU ms", box=None)
    for name, measured in found.items():
        median = {key: statistics.median(one[key] for one in measured) for key in FIGURES}
        speed, peak = f"{median['tokens_a_second']:.0f}", f"{median['peak'] / MIB:.0f}"
        workers = f"{(median['peak'] - median['own_peak']) / MIB:.0f}"
        steps = (f"{median[key] * 1000:.0f}" for key in ("seconds_a_step", "cpu_a_step"))
        absolute.add_row(name, speed, peak, workers, *steps)
    table = Table("measured", "target", "found", "rounds", box=None)
    for row in rows(found):
        table.add_row(*row)
    console.print(title, absolute)
    console.print(table)
