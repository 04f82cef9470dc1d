"""The cells of a comparison, one a method, seed and experiment, and the file that says how each of them stands.

    OUTPUT/cells.json                                      written anew whenever a cell ends
    OUTPUT/cells/<experiment>/<method>/seed-<seed>/        an ordinary run folder, and `log.txt`

In: what the runner found out about each cell. Out: the list that the report is made of. Trade-off: the state is a copy;
what a cell has done lies in its own folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spt.artifact import dump_json, read_json, write_atomically
from spt.errors import DamagedError, MissingError

STATES = ("finished", "failed", "waiting")
"""How a cell stands; `waiting`: not run to its end yet."""

FILE = "cells.json"


@dataclass(frozen=True)
class Cell:
    """One training and its evaluation.

    `budget`: `{"kind": "epochs" | "tokens" | "steps", "value": N}`. `reason`: why it failed.
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


def read_cells(folder: Path) -> Cells:
    """Return the cells of the comparison in an output folder; their own folders stand below it.

    Raises MissingError where there is none, DamagedError where the file is no list of cells.
    """
    path = folder / FILE
    if not path.exists():
        raise MissingError(f"{path}: there is no comparison here; run `spt compare CONFIG` first")
    found = read_json(path)
    try:
        cells = tuple(Cell(**{**row, "folder": folder / row["folder"]}) for row in found["cells"])
        return Cells(found["name"], found["baseline"], cells)
    except (KeyError, TypeError) as error:
        raise DamagedError(f"{path}: holds no cells ({error}); delete it, and run `spt compare CONFIG` again") from None


def write_cells(folder: Path, cells: Cells) -> None:
    """Write the list; the folders in it are relative to `folder`, so that the whole may be moved."""
    rows = [{**vars(cell), "folder": cell.folder.relative_to(folder).as_posix()} for cell in cells.cells]
    value = {"name": cells.name, "baseline": cells.baseline, "cells": rows}
    write_atomically(folder / FILE, dump_json(value) + "\n")
