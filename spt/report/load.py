"""A run's folder → Run: what the report needs of it, checked.

In: `evaluate/` of a finished run, and where it was trained here `train/`. Out: a frozen `Run`. Trade-off: of a long
question list only an even sample is kept, so that twenty runs fit in memory; the counts are always those of the whole.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spt.artifact import read_json
from spt.errors import DamagedError, MissingError

HALVES = ("name_first", "description_first", "both")
_OPTIONAL = ("model", "gap", "relations", "fluency", "perplexity")
KEPT_SCORES = 500
"""Questions kept of one run."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    `summary` is `evaluate/summary.json`; `scores` an even sample of its `n_scores` questions; `log` the lines of
    `train/metrics.jsonl`. `train` (the manifest) and `seconds` are empty where the model was not trained in this run.
    """

    name: str
    folder: Path
    summary: Mapping[str, Any]
    scores: tuple[Mapping[str, Any], ...]
    n_scores: int
    log: tuple[Mapping[str, Any], ...]
    train: Mapping[str, Any]
    seconds: float | None
    config: str

    @property
    def headline(self) -> str:
        """Return the name of the run's headline metric."""
        return str(self.summary["headline"])

    def figure(self, direction: str, relation: str | None = None) -> Mapping[str, Any] | None:
        """Return the headline figure of a direction, over all or of one relation, or None where there is none."""
        group = self.summary if relation is None else (self.summary.get("relations") or {}).get(relation) or {}
        return (group.get(direction) or {}).get(self.headline)

    @property
    def gap(self) -> Mapping[str, Any] | None:
        """Return forward minus reversed of the headline metric, or None where there is none."""
        return (self.summary.get("gap") or {}).get(self.headline)

    @property
    def fluency(self) -> Mapping[str, Any] | None:
        """Return the share of free generations in natural order, or None where it was not measured."""
        return (self.summary.get("fluency") or {}).get("natural_order")

    @property
    def relations(self) -> tuple[str, ...]:
        """Return the names of the halves, then of other relations."""
        names = self.summary.get("relations") or {}
        return (*(half for half in HALVES if half in names), *sorted(names.keys() - set(HALVES)))


def load_run(folder: Path) -> Run:
    """Return the run in a folder.

    Raises MissingError where its evaluation is not finished, DamagedError where a file is not what was written.
    """
    evaluate, train = folder / "evaluate", folder / "train"
    _check_finished(folder)
    summary = read_json(evaluate / "summary.json")
    missing = {"name", "headline", "match_rules", "forward", "reversed"} - summary.keys()
    if missing:
        names = ", ".join(sorted(missing))
        raise DamagedError(f"{evaluate / 'summary.json'}: lacks {names}; make it again: {_command(folder)} --force")
    scores = _read_lines(evaluate / "scores.jsonl", folder, needs="id")
    written = read_json(evaluate / "manifest.json").get("questions") if (evaluate / "manifest.json").exists() else None
    if written not in (None, len(scores)):
        raise DamagedError(
            f"{evaluate / 'scores.jsonl'}: {len(scores)} rows where {written} were written; make it again: "
            f"{_command(folder)} --force"
        )
    log, manifest, timings = train / "metrics.jsonl", train / "manifest.json", train / "timings.json"
    config = folder / "config.yaml"
    return Run(
        name=str(summary["name"]),
        folder=folder,
        summary=dict.fromkeys(_OPTIONAL) | summary,
        scores=tuple(_even_sample(scores, KEPT_SCORES)),
        n_scores=len(scores),
        log=tuple(_read_lines(log, folder, needs="step")) if log.exists() else (),
        train=read_json(manifest) if manifest.exists() else {},
        seconds=read_json(timings).get("seconds") if timings.exists() else None,
        config=config.read_text(encoding="utf-8", errors="replace") if config.exists() else "",
    )


def _check_finished(folder: Path) -> None:
    evaluate = folder / "evaluate"
    if not folder.is_dir():
        raise MissingError(f"{folder}: no such folder; give the output of a run, which `spt run CONFIG` makes")
    # A stage writes its key first and its manifest last.
    begun = (evaluate / "key.json").exists() and not (evaluate / "manifest.json").exists()
    if begun or not all((evaluate / name).exists() for name in ("summary.json", "scores.jsonl")):
        raise MissingError(f"{folder}: holds no finished evaluation; make it: {_command(folder)}")


def _command(folder: Path) -> str:
    config = folder / "config.yaml"
    return f"spt evaluate {config}" if config.exists() else f"spt run CONFIG --output {folder}"


def _read_lines(path: Path, folder: Path, *, needs: str) -> list[Mapping[str, Any]]:
    # Not splitlines: JSON may hold U+2028 and its like unescaped, and those are no line ends.
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DamagedError(
                f"{path}:{number}: cannot be read as JSON ({error}); make it again: {_command(folder)} --force"
            ) from None
        if not isinstance(row, dict) or needs not in row:
            raise DamagedError(
                f"{path}:{number}: holds no JSON object with {needs!r}; make it again: {_command(folder)} --force"
            )
        rows.append(row)
    return rows


def _even_sample(rows: Sequence[Mapping[str, Any]], at_most: int) -> list[Mapping[str, Any]]:
    kept = min(len(rows), at_most)
    return [rows[index * len(rows) // kept] for index in range(kept)]
