"""The folder of a comparison → what its cells measured, by experiment and method.

In: `cells.json` and the finished cells' folders. Out: the numbers of each cell by fact, and a list of the cells that
have none, with the reason. Trade-off: of a cell's scores only totals of facts are kept, two numbers a fact and group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spt.compare.cell import Cell, read_cells
from spt.config.evaluate import FRACTIONS
from spt.errors import DamagedError, MissingError, QuestionError
from spt.records import DIRECTIONS
from spt.report.load import Run, load_run, remedy
from spt.report.stored import Part, read_lines
from spt.statistics.columns import Columns
from spt.statistics.fact_rows import Rows
from spt.statistics.facts import FactTotals, by_fact

Group = tuple[str | None, str]
"""A relation (None: the headline) and a direction."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A finished cell: its run, the headline metric's totals by group, and those of its guards by name.

    `sizes` holds (questions, facts) of each group.
    """

    cell: Cell
    run: Run
    totals: Mapping[Group, FactTotals] = field(repr=False)
    sizes: Mapping[Group, tuple[int, int]] = field(repr=False)
    parts: Mapping[str, FactTotals] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Method:
    """A method's cells within one experiment, in the order of their seeds; `measured` are those that are finished."""

    name: str
    cells: tuple[Cell, ...]
    measured: tuple[Measured, ...]


@dataclass(frozen=True, eq=False)
class Experiment:
    """The methods of one experiment, all of which were asked the same questions."""

    name: str
    methods: tuple[Method, ...]

    @property
    def measured(self) -> list[Measured]:
        """Return all finished cells."""
        return [cell for method in self.methods for cell in method.measured]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison as far as it has come; `absent` are the cells without figures."""

    name: str
    baseline: str
    experiments: tuple[Experiment, ...]
    absent: tuple[Cell, ...]


def gather(folder: Path) -> Comparison:
    """Return what the comparison in a folder has measured so far.

    A finished cell whose folder cannot be read is absent, and says why. Raises MissingError, DamagedError for
    `cells.json`, QuestionError where the cells of an experiment did not answer the same questions.
    """
    listed = read_cells(folder)
    cells: list[Cell] = []
    found: dict[str, Measured] = {}
    for cell in listed.cells:
        try:
            if cell.state == "finished":
                found[cell.label] = _measure(cell)
            cells.append(cell)
        except (MissingError, DamagedError) as error:
            cells.append(replace(cell, state="damaged", reason=str(error)))
    experiments = []
    for name in dict.fromkeys(cell.experiment for cell in cells):
        own = [cell for cell in cells if cell.experiment == name]
        methods = dict.fromkeys(cell.method for cell in own)
        experiments.append(Experiment(name, tuple(_method(method, own, found) for method in methods)))
        _check_questions(experiments[-1])
    absent = tuple(cell for cell in cells if cell.label not in found)
    return Comparison(listed.name, listed.baseline, tuple(experiments), absent)


def _method(name: str, cells: Sequence[Cell], found: Mapping[str, Measured]) -> Method:
    own = sorted((cell for cell in cells if cell.method == name), key=lambda cell: cell.seed)
    return Method(name, tuple(own), tuple(found[cell.label] for cell in own if cell.label in found))


def _measure(cell: Cell) -> Measured:
    run = load_run(cell.folder)
    columns = Columns(run.scores())
    rows: dict[str | None, Rows] = {None: columns.tested()}
    rows |= {name: columns.of_relation(name) for name in columns.relations}
    totals: dict[Group, FactTotals] = {}
    sizes: dict[Group, tuple[int, int]] = {}
    for relation, own in rows.items():
        for direction in DIRECTIONS:
            asked = own & columns.of_direction(direction)
            group: Group = relation, direction
            sizes[group] = int(asked.sum()), columns.count_facts(asked)
            totals[group] = columns.totals(run.headline, asked)
    return Measured(cell, run, totals, sizes, _parts(cell.folder))


def _parts(folder: Path) -> dict[str, FactTotals]:
    path = folder / "evaluate" / "parts.jsonl"
    if not path.exists():  # of an evaluation that had none, or from before there were any
        return {}
    rows: dict[str, list[dict[str, Any]]] = {}
    for _, row in read_lines(path, Part, remedy(folder)):
        rows.setdefault(row["figure"], []).append(row)
    return {name: _totals(own) for name, own in rows.items()}


def _totals(rows: Sequence[Mapping[str, Any]]) -> FactTotals:
    facts = [row["part"] for row in rows]
    sums, counts = (by_fact([row[name] for row in rows], facts) for name in ("total", "count"))
    return FactTotals(sums.facts, sums.sums, counts.sums)


def _check_questions(experiment: Experiment) -> None:
    asked: dict[tuple[str, str], list[str]] = {}
    for measured in experiment.measured:
        asked.setdefault((measured.run.questions, measured.run.headline), []).append(str(measured.cell.folder))
    if len(asked) > 1:
        groups = "; ".join(f"{len(folders)} cells such as {folders[0]}" for folders in asked.values())
        raise QuestionError(
            f"{experiment.name}: its cells did not answer the same questions under the same headline metric "
            f"({groups}); delete the folders `evaluate` of those that are out of date, and run `spt compare` again"
        )
    if experiment.measured and experiment.measured[0].run.headline not in FRACTIONS:
        raise QuestionError(
            f"{experiment.name}: the headline metric {experiment.measured[0].run.headline!r} is none of this version's "
            f"({', '.join(FRACTIONS)}); run `spt compare` again"
        )
