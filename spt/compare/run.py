"""A comparison from its file to its cells: check, segment what is shared, run the cells.

    OUTPUT/comparison.yaml      what was asked for, every layer resolved
    OUTPUT/segmented/           what cells share (`grid`)
    OUTPUT/cells/, cells.json   the runs, and how they stand (`cell`)

In: a comparison. Out: each of its cells run to its end, and the list of how they stand. Trade-off: all segmenting comes
before all training, so that no cell waits for another one's data.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spt.artifact import read_json, sole_writer, write_atomically
from spt.compare.cell import Cell, Cells, write_cells
from spt.compare.check import check_plans
from spt.compare.config import Comparison
from spt.compare.grid import Plan, make_plans, shared_folders
from spt.compare.processes import Ended, Job, Processes, find_gpus
from spt.compare.standing import empty_scores, stand
from spt.config import Config, write_config
from spt.config.yaml_text import dump_yaml
from spt.errors import DamagedError, InputError, StoppedError, WorkError
from spt.progress import say, track

EXPERIMENT = "experiment.yaml"
"""A cell's experiment, beside its stages: `spt run` goes on with it alone."""
GO_ON = "The same command again goes on from there."


def run_comparison(comparison: Comparison, overrides: Sequence[str], *, force: bool = False) -> Cells:
    """Return how the cells stand after each has run, or was found finished.

    `overrides` are laid over every cell. `force`: what other settings made is replaced; nothing else is done twice.
    Raises what a check raises before anything is written, StaleError where another process runs the same comparison,
    StoppedError after a signal.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            "spt compare starts its own processes; give it --jobs N, without torchrun or accelerate launch"
        )
    plans = make_plans(comparison, overrides)
    check_plans(plans)
    folder = Path(comparison.output)
    with sole_writer(folder, "another `spt compare` is running here"):
        write_atomically(folder / "comparison.yaml", dump_yaml(comparison.model_dump(mode="json")))
        running = Running(comparison, plans)
        processes = Processes(comparison.jobs, find_gpus(os.environ))
        with processes.heeding_signals():
            running.segment(processes)
            running.look(force=force)
            running.train_and_ask(processes)
    return running.listed


def check_failures(cells: Cells) -> None:
    """Return nothing; raise WorkError where cells failed."""
    failed = [cell for cell in cells.cells if cell.state == "failed"]
    if failed:
        listed = "\n  ".join(f"{cell.label}: {_in_brief(str(cell.reason))}" for cell in failed)
        raise WorkError(
            f"{len(failed)} of {len(cells.cells)} cells failed:\n  {listed}\nThe whole reasons stand in cells.json, "
            "each cell's messages in its log.txt. The same command again runs these cells alone; what was made with "
            "another configuration, or is damaged, needs --force."
        )


def _in_brief(reason: str) -> str:
    """Return the first line of a reason, with what it announces."""
    first, *rest = reason.splitlines()
    return f"{first} {rest[0].strip()}" if rest and first.endswith(":") else first


@dataclass
class Running:
    """The cells of a comparison while they are run: how each stands, by label, and which begin anew."""

    comparison: Comparison
    plans: Sequence[Plan]
    cells: dict[str, Cell] = field(init=False)
    anew: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cells = {plan.cell.label: plan.cell for plan in self.plans}

    @property
    def listed(self) -> Cells:
        """Return how the cells stand, in their order."""
        return Cells(self.comparison.name, self.comparison.baseline, tuple(self.cells.values()))

    def segment(self, processes: Processes) -> None:
        """Make the segmented folders that are not there; the cells of one that cannot be made have failed."""
        folders = {Path(place): config for place, config in shared_folders(self.plans).items()}
        jobs = []
        for place, config in folders.items():
            manifest = place / "segmented/manifest.json"
            damaged = manifest.exists() and not _is_readable(manifest)
            if damaged:
                say(f"{manifest}: cannot be read; the folder is made again")
            if damaged or not manifest.exists():
                jobs.append(_job(place.name, place, config, "preprocess", force=damaged))
        for ended in self._each(processes, jobs, "segment", len(folders), "folders"):
            for plan in self.plans if ended.code else ():
                if plan.shared is not None and Path(plan.shared.output).name == ended.job.label:
                    self._note(plan.cell, "failed", f"segmenting failed, see {ended.job.log}:\n{ended.reason}")

    def look(self, *, force: bool) -> None:
        """Find out which cells are finished, and which another configuration made; `force` lets these begin anew."""
        stale: dict[str, list[str]] = {}
        for plan in self.plans:
            if self.cells[plan.cell.label].state == "failed":
                continue
            standing = stand(plan.config)
            if standing.finished:
                self._note(plan.cell, "finished")
            elif standing.stale is not None and not force:
                self._note(plan.cell, "failed", standing.stale)
                stale.setdefault(standing.stale, []).append(plan.cell.label)
            elif standing.train:
                self.anew.add(plan.cell.label)
            elif standing.evaluate:
                empty_scores(plan.config)
        for reason, labels in stale.items():
            say(f"{', '.join(labels)}: {reason}")
        self._say_others()
        self._write()

    def _say_others(self) -> None:
        """Name the finished cells of methods, seeds and experiments that this comparison has not."""
        found = Path(self.comparison.output).glob("cells/*/*/seed-*/evaluate/manifest.json")
        own = {cell.folder for cell in self.cells.values()}
        others = sorted(str(path.parents[1]) for path in found if path.parents[1] not in own)
        if others:
            named = ", ".join(others[:3]) + ", ..." * (len(others) > 3)
            say(f"{len(others)} finished cells are none of this comparison's, and so not in its report: {named}")

    def train_and_ask(self, processes: Processes) -> None:
        """Run the cells that wait."""
        waiting = [plan for plan in self.plans if self.cells[plan.cell.label].state == "waiting"]
        jobs = [
            _job(plan.cell.label, plan.cell.folder, plan.config, "run", force=plan.cell.label in self.anew)
            for plan in waiting
        ]
        cells = {plan.cell.label: plan.cell for plan in waiting}
        total, failed = len(self.plans), sum(cell.state == "failed" for cell in self.cells.values())
        say(f"{total} cells: {total - failed - len(jobs)} finished before, {failed} cannot run, {len(jobs)} to run")
        for ended in self._each(processes, jobs, "compare", total, "cells"):
            cell = cells[ended.job.label]
            self._note(cell, "failed", ended.reason) if ended.code else self._note(cell, "finished")
            self._write()

    def _each(self, processes: Processes, jobs: Sequence[Job], what: str, total: int, unit: str) -> Iterator[Ended]:
        """Yield the jobs as they end, but for those that a signal to this process ended; raise StoppedError then."""
        with track(what, total, unit, done=total - len(jobs)) as bar:
            for ended in processes.run(jobs, lambda labels: bar.advance(0, f"now {', '.join(labels)}")):
                if ended.code and processes.asked is not None:
                    continue
                if ended.code:
                    say(f"{ended.job.label} failed ({ended.job.log}):\n{ended.reason}")
                yield ended
                bar.advance(note=f"{ended.job.label} took {ended.seconds:.0f} s")
        if processes.asked is not None:
            done = sum(cell.state == "finished" for cell in self.cells.values())
            raise StoppedError(
                f"stopped by {processes.asked.name}: {done} of {len(self.plans)} cells are finished, the others "
                f"are saved as far as they are. {GO_ON}"
            )

    def _note(self, cell: Cell, state: str, reason: str | None = None) -> None:
        self.cells[cell.label] = replace(cell, state=state, reason=reason)

    def _write(self) -> None:
        write_cells(Path(self.comparison.output), self.listed)


def _is_readable(manifest: Path) -> bool:
    try:
        read_json(manifest)
    except DamagedError:
        return False
    return True


def _job(label: str, folder: Path, config: Config, command: str, *, force: bool = False) -> Job:
    """Return `spt COMMAND` on an experiment, which is written to its folder."""
    write_config(config, folder / EXPERIMENT)
    flags = ("--quiet", "--force") if force else ("--quiet",)
    arguments = "-m", "spt", command, str(folder / EXPERIMENT), *flags
    return Job(label, (sys.executable, *arguments), folder / "log.txt")
