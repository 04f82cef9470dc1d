"""A run's folder → Run: what the report needs of it, checked; and its scores, one at a time.

In: `evaluate/` of a finished run, and where it was trained here `train/`. Out: a frozen `Run`, and a stream of `Score`.
Trade-off: the scores are read and checked once when a run is loaded and again by each part of the report that wants
them, so that a million of them never lie in memory.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spt.artifact import dump_json
from spt.corpus.seen import SeenIds
from spt.errors import DamagedError, MissingError
from spt.metrics import METRICS
from spt.metrics.stored import score_of
from spt.records import Question, Score
from spt.report.stored import Evaluated, Line, Row, Summary, Timings, Trained, check_numbers, read_lines, read_object

HALVES = ("name_first", "description_first", "both")


@dataclass(frozen=True)
class Run:
    """A finished run.

    `summary` is `evaluate/summary.json`, with None for what an older one lacks; `n_scores` how many questions were
    asked, and `questions` a digest of them, the same whatever their order; `log` the lines of `train/metrics.jsonl`.
    `train` (the manifest) and `seconds` are empty where the model was not trained in this run.
    """

    name: str
    folder: Path
    summary: Mapping[str, Any]
    n_scores: int
    questions: str
    log: tuple[Mapping[str, Any], ...] = field(repr=False)
    train: Mapping[str, Any] = field(repr=False)
    seconds: float | None
    config: str = field(repr=False)

    @property
    def headline(self) -> str:
        """Return the name of the run's headline metric."""
        return str(self.summary["headline"])

    def figure(self, direction: str, relation: str | None = None) -> Mapping[str, Any] | None:
        """Return the headline figure of a direction, over all or of one relation, or None where there is none."""
        group = self.summary if relation is None else (self.summary.get("relations") or {}).get(relation) or {}
        return known((group.get(direction) or {}).get(self.headline))

    @property
    def gap(self) -> Mapping[str, Any] | None:
        """Return forward minus reversed of the headline metric, or None where there is none."""
        return known((self.summary.get("gap") or {}).get(self.headline))

    @property
    def fluency(self) -> Mapping[str, Any] | None:
        """Return the share of free generations in natural order, or None where it was not measured."""
        return known((self.summary.get("fluency") or {}).get("natural_order"))

    @property
    def guards(self) -> Mapping[str, Mapping[str, Any] | None]:
        """Return the guards by name; empty for a run from before there were any."""
        return self.summary.get("guards") or {}

    @property
    def relations(self) -> tuple[str, ...]:
        """Return the names of the halves, then of other relations."""
        names = self.summary.get("relations") or {}
        return (*(half for half in HALVES if half in names), *sorted(names.keys() - set(HALVES)))

    def scores(self) -> Iterator[Score]:
        """Yield the score of each question, in the order of the file."""
        return read_scores(self.folder / "evaluate" / "scores.jsonl", remedy(self.folder))


def known(figure: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a figure, or None where its value is."""
    return figure if figure and figure.get("value") is not None else None


def load_run(folder: Path) -> Run:
    """Return the run in a folder.

    Raises MissingError where its evaluation is not finished, DamagedError where a file is not what was written.
    """
    evaluate, train = folder / "evaluate", folder / "train"
    _check_finished(folder)
    again = remedy(folder)
    summary = read_object(evaluate / "summary.json", Summary, again)
    manifest, trained, timings = evaluate / "manifest.json", train / "manifest.json", train / "timings.json"
    n_scores, questions = _count(folder)
    written = read_object(manifest, Evaluated, again).get("questions") if manifest.exists() else None
    if written not in (None, n_scores):
        raise DamagedError(f"{evaluate / 'scores.jsonl'}: {n_scores} rows where {written} were written; {again}")
    log, config = train / "metrics.jsonl", folder / "config.yaml"
    retrain = f"delete {train} and train again, or report on a folder without it"
    return Run(
        name=str(summary["name"]),
        folder=folder,
        summary=dict.fromkeys(Summary.model_fields) | summary,
        n_scores=n_scores,
        questions=questions,
        log=tuple(line for _, line in read_lines(log, Line, retrain)) if log.exists() else (),
        train=read_object(trained, Trained, retrain) if trained.exists() else {},
        seconds=read_object(timings, Timings, retrain).get("seconds") if timings.exists() else None,
        config=config.read_text(encoding="utf-8", errors="replace") if config.is_file() else "",
    )


def read_scores(path: Path, again: str = "evaluate again with --force") -> Iterator[Score]:
    """Yield the scores of a `scores.jsonl`, in its order, one in memory at a time.

    A metric of a question that is null or absent there is absent in its score; a log-probability that no server gave is
    not a number. Raises DamagedError, whose message ends with what to do: `again`.
    """
    for place, row in read_lines(path, Row, again):
        numbers = check_numbers({name: row[name] for name in _NUMBERS if name in row}, place, again)
        yield score_of({name: value for name, value in row.items() if value is not None} | numbers, tuple(METRICS))


_NUMBERS = (*METRICS, *(f"{name}_floor" for name in METRICS), "logprob")


def remedy(folder: Path) -> str:
    """Return what to do about a damaged evaluation."""
    return f"make it again: {_command(folder)} --force"


def _count(folder: Path) -> tuple[int, str]:
    """Return how many questions were asked, and a digest of them that does not depend on their order."""
    total = count = 0
    path = folder / "evaluate" / "scores.jsonl"
    with SeenIds() as seen:
        for count, score in enumerate(read_scores(path, remedy(folder)), start=1):
            name = score.question.id
            # As JSON, which can hold what JSON brought in: a lone surrogate.
            if seen.add(json.dumps(name), str(path), count):
                raise DamagedError(f"{path}: question {name!r} stands there twice; {remedy(folder)}")
            total += _digest(score.question)
    return count, f"{total % 2**128:032x}"


def _digest(question: Question) -> int:
    asked = [question.id, question.fact_id, question.direction, question.prompt, question.targets]
    text = dump_json([*asked, question.distractors, question.relation], indent=None)
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest())


def _check_finished(folder: Path) -> None:
    evaluate = folder / "evaluate"
    if not folder.is_dir():
        raise MissingError(f"{folder}: no such folder; give the output of a run, which `spt run CONFIG` makes")
    if (folder / "cells.json").exists():
        raise MissingError(
            f"{folder}: is a comparison, whose report is {folder / 'report.html'}; give some of its cells, such as "
            f"{folder / 'cells/EXPERIMENT/METHOD/seed-0'}"
        )
    # A stage writes its key first and its manifest last.
    begun = (evaluate / "key.json").exists() and not (evaluate / "manifest.json").exists()
    if begun or not all((evaluate / name).exists() for name in ("summary.json", "scores.jsonl")):
        raise MissingError(f"{folder}: holds no finished evaluation; make it: {_command(folder)}")


def _command(folder: Path) -> str:
    config = folder / "config.yaml"
    return f"spt evaluate {config}" if config.exists() else f"spt run CONFIG --output {folder}"
