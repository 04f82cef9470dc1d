"""The train part of `--dry-run`: parameters, steps, tokens, memory, time, and the first batch with its label mask.

Colours only support what the text says: what is not learned stands in brackets.
"""

from datetime import timedelta
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from spt.cli.show import render_batch
from spt.train.estimate import UTILISATION, Estimate
from spt.train.preview import RECORDS

SHOWN = 4
"""Rows of the first batch that are printed."""
GB = 1e9


def render_estimate(found: Estimate) -> Group:
    """Return an estimate as text and a table, at most 80 columns wide where a terminal is."""
    facts = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(found):
        facts.add_row(name, text)
    return Group(facts, "", _memory(found), "", *_first_batch(found))


def estimate_values(found: Estimate) -> dict[str, Any]:
    """Return an estimate as an object for `--json`; memory in bytes of one device, time in seconds."""
    seen, machine = found.seen, found.machine
    rows, width = seen.largest.input_ids.shape
    return {
        "parameters": {"total": found.parameters, "trained": found.trained},
        "records": seen.records,
        "all_records_counted": seen.whole,
        "steps": seen.steps,
        "examples": seen.examples,
        "tokens": seen.tokens,
        "non_padding": seen.filled,
        "largest_micro_batch": [rows, width],
        "machine": {"devices": machine.devices, "name": machine.name, "memory": machine.memory, "flops": machine.peak},
        "memory": {row.strategy: vars(row) | {"total": row.total} for row in found.memory},
        "seconds": found.seconds,
        "utilisation": None if found.seconds is None else UTILISATION,
        "measured_tokens_per_second": found.rate,
        "first_batch": [text.plain for text in _first_batch(found)[1:]],
    }


def _facts(found: Estimate) -> list[tuple[str, str]]:
    seen, rows_and_width = found.seen, " x ".join(map(str, found.seen.largest.input_ids.shape))
    share = found.trained / found.parameters
    more = "" if seen.whole else f" for the first {RECORDS:,} records; there may be more"
    epochs = f"{seen.steps_per_epoch:,} an epoch"
    sure = "" if seen.segmented else "; orders are drawn once the corpus is segmented"
    return [
        ("parameters", f"{_count(found.parameters)}, {_count(found.trained)} of them trained ({share:.1%})"),
        ("steps", f"{seen.steps:,} ({epochs}){more}"),
        ("examples", f"{seen.examples:,} from {seen.records:,} records"),
        ("tokens", f"{seen.tokens:,}, {seen.tokens / seen.examples:.1f} an example ({seen.peeked:,} encoded{sure})"),
        ("batch", f"{rows_and_width} tokens a device at most, {1 - seen.filled:.0%} of all positions padding"),
        ("time", _time(found)),
    ]


def _time(found: Estimate) -> str:
    if found.rate:
        return f"{_span(found.seen.tokens / found.rate)} at the {found.rate:,.0f} tokens/s logged by this training"
    machine = found.machine
    if found.seconds is None or machine.peak is None:
        return f"unknown: no matrix rate is on record for {machine.name}; the log will tell (tokens_per_second)"
    rate = f"{UTILISATION:.0%} (assumed) of {machine.peak / 1e12:,.0f} TFLOP/s"
    return f"{_span(found.seconds)} on {machine.devices} x {machine.name}, at {rate}"


def _span(seconds: float) -> str:
    return "less than a minute" if seconds < 60 else f"{timedelta(seconds=round(seconds))}"


def _memory(found: Estimate) -> Table:
    machine = found.machine
    room = "" if machine.memory is None else f" of {machine.memory / GB:.0f}"
    title = f"memory of one device ({machine.name}), GB, estimated; a runtime's own 0.5 to 2 not counted"
    table = Table(title=title, title_justify="left", title_style="", box=None, padding=(0, 1), pad_edge=False)
    for name in ("", "weights", "grads", "AdamW", "activ.", "logits", f"total{room}"):
        table.add_column(name, justify="right" if name else "left", no_wrap=not name)
    for row in found.memory:
        parts = (row.weights, row.gradients, row.optimizer, row.activations, row.logits)
        fits = "" if machine.memory is None or row.total <= machine.memory else " too much"
        table.add_row(row.strategy, *map(_gb, parts), _gb(row.total) + fits)
    return table


def _first_batch(found: Estimate) -> list[Text]:
    seen, batch = found.seen, found.seen.first
    lines = render_batch(batch, seen.tokenizer)
    rows = len(batch.input_ids)
    each = len(lines) // rows
    shown = f"its first {SHOWN} of {rows} rows" if rows > SHOWN else f"{rows} row{'s' * (rows > 1)}"
    learned = f"{batch.target_tokens} of {batch.tokens} tokens learned"
    if batch.visible is None:
        title = f"first batch, {shown}; {learned}, the others in brackets"
    else:
        title = f"first batch with masked tokens (step {seen.first_step + 1}), {shown}; {learned}"
    return [Text(title), *(Text.assemble("  ", line) for line in lines[: SHOWN * each])]


def _gb(size: float | None) -> str:
    return "?" if size is None else f"{size / GB:.2f}" if size < 10 * GB else f"{size / GB:,.0f}"


def _count(number: int) -> str:
    for unit, size in (("billion", 1e9), ("million", 1e6)):
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return f"{number:,}"
