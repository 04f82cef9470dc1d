"""The data stage: corpus → `segmented/`.

    Record ──▶ Segmentation ──▶ draft ──▶ part ──▶ manifest

In: an experiment. Out: its segmented folder. A killed run reads the corpus again, which is cheap, and segments only the
shards that have no draft. When all are drafted, the types of the records' other columns are known, and the parts are
written. Trade-off: every row is written twice, so that a column whose type changes in the last row costs no rerun.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

import spt.corpus
import spt.preprocess
import spt.records
import spt.segment
from spt.artifact import Stage, dump_json, hash_code, hash_file, open_stage, versions, write_atomically
from spt.config import Config, Source
from spt.corpus import Rejects, input_key, read_records, stop
from spt.errors import ConfigError, CorpusError, InputError
from spt.preprocess.columns import describe, join_kinds, rename
from spt.preprocess.counts import Counts
from spt.preprocess.read import check_segmented, find_segmented
from spt.preprocess.shards import (
    DRAFTS,
    SCHEMA,
    Draft,
    hash_shard,
    part_name,
    read_draft,
    write_draft,
    write_part,
)
from spt.preprocess.summary import details, rejections, summary_line
from spt.preprocess.workers import Cut, cutter
from spt.progress import Bar, say, track
from spt.records import Record, Segmentation
from spt.segment import Segmenter, make_segmenter
from spt.segment.protocol import Asking


def preprocess(config: Config, *, output: Path | None = None, force: bool = False) -> Path:
    """Return the segmented folder of an experiment, made if it is not there.

    It is `segmented` in `output` (default: the experiment's), or `data.segmented` where that is given. Raises
    InputError where there is no record to segment, CorpusError under `on_error: stop`, StaleError for another
    experiment's folder.
    """
    if config.data.segmented is not None:
        shared = find_segmented(config.data.segmented)
        check_segmented(shared, config.segment)
        return shared
    if config.data.train is None:
        raise ConfigError("data.train: no corpus to segment; give data.train.path")
    segmenter = make_segmenter(config.segment)
    folder = Path(output or config.output) / "segmented"
    with open_stage(folder, preprocess_key(config, segmenter), force=force) as stage:
        if not stage.finished:
            _run(config, config.data.train, segmenter, stage)
        else:
            say(f"segmented: reused, {summary_line(stage.manifest)} ({folder})")
        shutil.rmtree(folder / DRAFTS, ignore_errors=True)
    return folder


def preprocess_key(config: Config, segmenter: Segmenter | None = None) -> dict[str, Any]:
    """Return what the segmented data depends on: the corpus, how it is read and cut, and the code that does it."""
    data = config.data
    assert data.train is not None
    segmenter = segmenter or make_segmenter(config.segment)
    return {
        "data": {
            "train": input_key(data.train),
            "on_error": data.on_error,
            "limit": data.limit,
            "shard_size": data.shard_size,
        },
        "segment": config.segment.stored,
        "segmenter": segmenter.key(),
        "code": hash_code(spt.corpus, spt.segment, spt.preprocess, spt.records),
        "versions": versions("pyarrow"),
    }


def _run(config: Config, source: Source, segmenter: Segmenter, stage: Stage) -> None:
    started = time.monotonic()
    for note in segmenter.notes:
        say(note)
    rejects = Rejects()
    try:
        drafted = _draft(config, source, segmenter, stage, rejects)
    except InputError:
        # The input has to change, and with it the key. The drafts stay: shards that do not change are not cut again.
        (stage.folder / "key.json").unlink()
        raise
    drafts = drafted.drafts
    kinds = join_kinds(draft.kinds for draft in drafts)
    names = rename(kinds, SCHEMA.names)
    for index in range(len(drafts)):
        write_part(stage.folder, index, kinds, names)
    (stage.folder / DRAFTS / "rejects.jsonl").replace(stage.folder / "rejects.jsonl")
    counts = sum((draft.counts for draft in drafts), Counts())
    asked = segmenter.counts() if isinstance(segmenter, Asking) else {}
    timings = {"seconds": round(time.monotonic() - started, 3), **drafted.timings, **asked}
    write_atomically(stage.folder / "timings.json", dump_json(timings) + "\n")
    stage.finish(
        seed=config.seed,
        versions=versions("spt-llm", "spacy", "pyarrow"),
        notes=list(segmenter.notes),
        parts={
            name: {"rows": draft.counts.records, "sha256": hash_file(stage.folder / name)}
            for name, draft in zip(map(part_name, count()), drafts, strict=False)
        },
        columns={names[name]: stored for name, stored in describe(kinds).items()},
        counts={**counts.to_json(), "rejects": dict(rejects.counts)},
    )
    _tell(stage, kinds, names, drafted)


@dataclass
class Drafted:
    """The drafts of all shards; of these, what this run cut itself, and how long cutting took."""

    drafts: list[Draft] = field(default_factory=list)
    fresh: Counts = field(default_factory=Counts)
    seconds: float = 0.0

    @property
    def sentences_per_second(self) -> float | None:
        """Return the speed of cutting, or None where an earlier run had cut everything."""
        return self.fresh.sentences / self.seconds if self.fresh.records else None

    @property
    def timings(self) -> dict[str, Any]:
        """Return what `timings.json` says of them."""
        speed = self.sentences_per_second
        return {
            "records_segmented": self.fresh.records,
            "records_resumed": sum(draft.counts.records for draft in self.drafts) - self.fresh.records,
            "seconds_segmenting": round(self.seconds, 3),
            "sentences_per_second": speed and round(speed, 1),
        }


def _draft(config: Config, source: Source, segmenter: Segmenter, stage: Stage, rejects: Rejects) -> Drafted:
    """Return the drafts of all shards.

    Rejects are found anew on each run, since the corpus is read anew.
    """
    work = stage.folder / DRAFTS
    work.mkdir(exist_ok=True)
    policy: Callable[[CorpusError], None] = rejects if config.data.on_error == "reject" else stop
    records = read_records(source, reject=policy, limit=config.data.limit)
    cut_by = {name: stage.key[name] for name in ("segment", "segmenter", "code")}
    drafted = Drafted()
    with (
        (work / "rejects.jsonl").open("w", encoding="utf-8") as rejected,
        track("segment", config.data.limit, "records") as bar,
        cutter(config.segment, segmenter) as cut,
    ):
        for index in count():
            shard = list(islice(records, config.data.shard_size))
            rejected.writelines(_lines(rejects))
            if not shard:
                break
            if index == 0:
                _check_column(config, shard)
            of = hash_shard(cut_by, shard)
            draft = read_draft(work, index, of)
            if draft is None:
                draft = _cut_shard(cut, shard, work, index, of, drafted, bar)
            else:
                bar.advance(len(shard))
            drafted.drafts.append(draft)
    if not drafted.drafts:
        raise InputError(
            f"{_name(source)}: no record to segment; {rejections(rejects.counts) or 'the corpus is empty'}"
        )
    return drafted


def _cut_shard(cut: Cut, shard: list[Record], work: Path, index: int, of: str, drafted: Drafted, bar: Bar) -> Draft:
    rows: list[Segmentation] = []
    started = time.monotonic()
    for chunk in cut(shard):
        rows += chunk
        bar.advance(len(chunk))
    drafted.seconds += time.monotonic() - started
    draft = write_draft(work, index, of, shard, rows)
    drafted.fresh += draft.counts
    return draft


def _check_column(config: Config, shard: list[Record]) -> None:
    column = config.segment.names_column
    if column is not None and not any(column in record.columns for record in shard):
        there = sorted({name for record in shard for name in record.columns})
        raise InputError(
            f"segment.names_column: none of the first {len(shard)} records has a column {column!r}; they have "
            f"{', '.join(there) or 'no columns besides the text'}"
        )


def _lines(rejects: Rejects) -> Iterator[str]:
    for row in rejects.take():
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _tell(stage: Stage, kinds: dict[str, list[str]], names: dict[str, str], drafted: Drafted) -> None:
    for name, stored in describe(kinds).items():
        if names[name] != name:
            say(f"column {name!r} has a name of ours; it is kept as {names[name]!r}")
        if stored == "json" and kinds[name] != ["json"]:
            types = ", ".join(kinds[name])
            say(f"column {name!r} holds values of several types ({types}); it is kept as JSON text")
    say(f"segmented: {summary_line(stage.manifest)} ({stage.folder})")
    for line in details(stage.manifest):
        say(line)
    if drafted.sentences_per_second is not None:
        say(f"  {drafted.sentences_per_second:,.0f} sentences/s")


def _name(source: Source) -> str:
    return source.hub or ", ".join(source.paths)
