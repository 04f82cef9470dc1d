"""A row of the training log, to `metrics.jsonl` and to the trackers that `train.report_to` names.

In: names and values at a step. Out: one JSON line, and its numbers in TensorBoard, Weights & Biases, or whatever else
accelerate's trackers offer, under the same step. Trade-off: `metrics.jsonl` is the record, cut back to the checkpoint
when a run goes on; a tracker that cannot take steps back shows those after the checkpoint twice.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

from spt.artifact import write_atomically
from spt.checkpoint import sync
from spt.config import Config
from spt.errors import InputError, MissingError

_PACKAGES = {"comet_ml": "comet-ml"}
"""Packages that are not called as their tracker."""


def trackers_of(config: Config) -> list[str]:
    """Return the trackers that `train.report_to` names, none twice; none for `none`.

    Raises InputError for a name that accelerate does not know, MissingError where its package is not installed.
    """
    given = config.train.report_to
    names = list(dict.fromkeys((given,) if isinstance(given, str) else given))
    if names == ["none"]:
        return []
    known, installed = sorted(map(str, LOGGER_TYPE_TO_CLASS)), set(map(str, get_available_trackers()))
    for name in names:
        if name not in known:
            raise InputError(f"train.report_to: {name!r}; give none, or one or a list of {', '.join(known)}")
        if name not in installed:
            raise MissingError(
                f"train.report_to: {name} is not installed; pip install {_PACKAGES.get(name, name)}, or use "
                "train.report_to: none"
            )
    return names


@dataclass(frozen=True)
class Log:
    """The log of one training; the main process alone writes."""

    path: Path
    accelerator: Accelerator

    @classmethod
    def start(cls, config: Config, folder: Path, accelerator: Accelerator) -> "Log":
        """Return the log in a training folder, its trackers started; what they keep on disk lies in `trackers/`."""
        accelerator.log_with = trackers_of(config)
        accelerator.project_configuration.logging_dir = str(folder / "trackers")
        if accelerator.log_with and accelerator.is_main_process:
            own = {"wandb": {"name": config.name, "dir": folder / "trackers", "resume": "allow", "id": _run_id(folder)}}
            accelerator.init_trackers(config.name, _settings(config.model_dump(mode="json")), own)
        return cls(folder / "metrics.jsonl", accelerator)

    def write(self, step: int, **values: Any) -> None:
        """Append one line; the trackers get its numbers, those of a nested mapping as `outer/inner`."""
        if not self.accelerator.is_main_process:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        flat = _flatten(values, "/")
        self.accelerator.log({name: value for name, value in flat if _is_number(value)}, step=step)

    def sync(self) -> None:
        """Wait until the lines written so far are on disk."""
        if self.accelerator.is_main_process and self.path.exists():  # a checkpoint may come before the first line
            sync(self.path)

    def finish(self) -> None:
        """Close the trackers (accelerate's own way also takes the process group down)."""
        for tracker in self.accelerator.trackers:
            tracker.finish()
        self.accelerator.trackers.clear()


def _run_id(folder: Path) -> str:
    """Return the run's name at a service, kept beside its log so that a resumed run goes on with its own curves."""
    path = folder / "trackers" / "run_id"
    if not path.exists():
        write_atomically(path, uuid4().hex)
    return path.read_text(encoding="utf-8")


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment as trackers take it: `train.epochs: 3`, lists as JSON text."""
    return {
        name: value if isinstance(value, str | int | float | None) else json.dumps(value)
        for name, value in _flatten(config, ".")
    }


def _flatten(values: Mapping[str, Any], separator: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, separator, f"{prefix}{name}{separator}")
        else:
            yield f"{prefix}{name}", value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
