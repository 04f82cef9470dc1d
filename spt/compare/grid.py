"""The cells of a comparison, each with its experiment.

    experiment ◀─ method ◀─ adapt ◀─ --set ◀─ name, seed, output, data.segmented

In: a comparison. Out: a plan for each cell, and the segmented folders that cells of one experiment share because their
preprocessing has the same key. Trade-off: a cell's experiment depends on its own layers and seed alone, so neither the
other cells nor how many run at a time change what it computes; the price is that two experiments share nothing.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spt.artifact import dump_json
from spt.compare.cell import Cell
from spt.compare.config import Comparison
from spt.config import Config, Train
from spt.config.read import apply_override, check_values, lay_over
from spt.errors import ConfigError
from spt.preprocess import preprocess_key


@dataclass(frozen=True)
class Plan:
    """A cell, and the experiment that it runs; `shared` makes the segmented data that it reads (None: it is given)."""

    cell: Cell
    config: Config
    shared: Config | None


def make_plans(comparison: Comparison, overrides: Sequence[str]) -> list[Plan]:
    """Return the plan of each cell: seeds outermost, then experiments, then methods.

    Raises ConfigError for a cell that is no experiment, and what reading its corpus and making its segmenter raises.
    """
    folders: dict[str, str] = {}
    return [
        _plan(comparison, experiment, method, seed, overrides, folders)
        for seed in comparison.seeds
        for experiment in comparison.experiments
        for method in comparison.methods
    ]


def _plan(
    comparison: Comparison, experiment: str, method: str, seed: int, overrides: Sequence[str], folders: dict[str, str]
) -> Plan:
    values = lay_over(comparison.experiments[experiment], comparison.methods[method])
    values = lay_over(values, comparison.adapt.get(experiment, {}).get(method, {}))
    for override in overrides:
        values = apply_override(values, override)
    output = Path(comparison.output)
    folder = output / "cells" / experiment / method / f"seed-{seed}"
    own = {"name": f"{experiment}-{method}-seed-{seed}", "seed": seed, "output": str(folder)}
    config = check_values({**values, **own}, Config, f"{comparison.name}, {experiment} with {method}")
    if config.data.questions is None:
        raise ConfigError(f"{experiment} with {method}: data.questions is missing, and a comparison asks; give a path")
    shared = None
    if config.data.segmented is None:
        place = output / "segmented" / f"{experiment}-{_short_hash(config, folders)}"
        # Nothing of the cell that comes first may stand in what all of them read.
        shared = config.model_copy(update={"name": experiment, "seed": 0, "output": str(place)})
        config = config.model_copy(update={"data": config.data.model_copy(update={"segmented": str(place)})})
    return Plan(Cell(experiment, method, seed, folder, "waiting", budget_of(config.train)), config, shared)


def _short_hash(config: Config, known: dict[str, str]) -> str:
    """Return a hash of what preprocessing depends on; `known` holds those found, since a key reads the corpus."""
    given = {name: getattr(config, name).model_dump(mode="json") for name in ("data", "segment")}
    given["augment"] = [entry.model_dump(mode="json") for entry in config.augment]
    text = json.dumps(given, sort_keys=True)
    if text not in known:
        known[text] = hashlib.sha256(dump_json(preprocess_key(config)).encode()).hexdigest()[:10]
    return known[text]


def budget_of(train: Train) -> Mapping[str, Any]:
    """Return what ends a training: passes over its own examples (data-matched), tokens (compute-matched), or steps."""
    if train.max_tokens is not None:
        return {"kind": "tokens", "value": train.max_tokens}
    if train.max_steps is not None:
        return {"kind": "steps", "value": train.max_steps}
    return {"kind": "epochs", "value": train.epochs}


def shared_folders(plans: Sequence[Plan]) -> dict[str, Config]:
    """Return the experiments whose preprocessing cells share, by the folder that they are made in."""
    return {plan.shared.output: plan.shared for plan in plans if plan.shared is not None}
