"""The cells of a comparison, one a method, seed and experiment, and the file that says how each of them stands.

    OUTPUT/cells.json                                      written anew whenever a cell ends
    OUTPUT/cells/<experiment>/<method>/seed-<seed>/        an ordinary run folder, and `log.txt`

In: what the runner found out about each cell. Out: the list that the report is made of. Trade-off: the state is a copy;
what a cell has done lies in its own folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from spt.artifact import dump_json, write_atomically
from spt.errors import DamagedError, MissingError
from spt.report.stored import Count, Text, read_object

FILE = "cells.json"


@dataclass(frozen=True)
class Cell:
    """One training and its evaluation.

    `state`: `finished`, `failed`, or `waiting` (not run to its end yet); in a report also `damaged` (finished, but it
    cannot be read). `budget`: `{"kind": "epochs" | "tokens" |
    "steps", "value": N}`. `reason`: why it failed.
    """

    experiment: str
    method: str
    seed: int
    folder: Path
    state: str
    budget: Mapping[str, Any]
    reason: str | None = None

    @property
    def label(self) -> str:
        """Return `experiment/method/seed-N`: its place under `cells/`, and what messages call it."""
        return f"{self.experiment}/{self.method}/seed-{self.seed}"


@dataclass(frozen=True)
class Cells:
    """A comparison as far as it has come: seeds outermost, then experiments, then methods."""

    name: str
    baseline: str
    cells: tuple[Cell, ...]


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Budget(_Stored):
    kind: Literal["epochs", "tokens", "steps"]
    value: Count


class _Row(_Stored):
    experiment: Text
    method: Text
    seed: Count
    folder: Text
    state: Literal["finished", "failed", "waiting"]
    budget: _Budget
    reason: Text | None


class _File(_Stored):
    name: Text
    baseline: Text
    cells: list[_Row]


def read_cells(folder: Path) -> Cells:
    """Return the cells of the comparison in an output folder; their own folders stand below it.

    Raises MissingError where there is none, DamagedError where the file is no list of cells.
    """
    path, remedy = folder / FILE, "delete it, and run `spt compare CONFIG` again"
    if not path.exists():
        raise MissingError(f"{path}: there is no comparison here; run `spt compare CONFIG` first")
    found = read_object(path, _File, remedy)
    cells = tuple(Cell(**{**row, "folder": folder / row["folder"]}) for row in found["cells"])
    if len({cell.label for cell in cells}) < len(cells):
        raise DamagedError(f"{path}: a cell stands there twice; {remedy}")
    return Cells(found["name"], found["baseline"], cells)


def write_cells(folder: Path, cells: Cells) -> None:
    """Write the list; the folders in it are relative to `folder`, so that the whole may be moved."""
    rows = [{**vars(cell), "folder": cell.folder.relative_to(folder).as_posix()} for cell in cells.cells]
    value = {"name": cells.name, "baseline": cells.baseline, "cells": rows}
    write_atomically(folder / FILE, dump_json(value) + "\n")
