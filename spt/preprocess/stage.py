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
from itertools import count, islice
from pathlib import Path
from typing import Any

import spt.corpus
import spt.preprocess
import spt.records
import spt.segment
from spt.artifact import Stage, dump_json, hash_code, open_stage, versions, write_atomically
from spt.config import Config, Source
from spt.corpus import Rejects, input_key, read_records, stop
from spt.errors import ConfigError, CorpusError, InputError
from spt.preprocess.columns import describe, join_kinds, rename
from spt.preprocess.read import read_manifest
from spt.preprocess.shards import SCHEMA, Counts, Draft, part_name, read_draft, write_draft, write_part
from spt.progress import say, track
from spt.segment import Segmenter, make_segmenter


def preprocess(config: Config, *, output: Path | None = None, force: bool = False) -> Path:
    """Return the segmented folder of an experiment, made if it is not there.

    It is `segmented` in `output` (default: the experiment's), or `data.segmented` where that is given. Raises
    InputError where there is no record to segment, CorpusError under `on_error: stop`, StaleError for another
    experiment's folder.
    """
    if config.data.segmented is not None:
        read_manifest(Path(config.data.segmented))
        return Path(config.data.segmented)
    if config.data.train is None:
        raise ConfigError("data.train: no corpus to segment; give data.train.path")
    segmenter = make_segmenter(config.segment)
    folder = Path(output or config.output) / "segmented"
    with open_stage(folder, _key(config, config.data.train, segmenter), force=force) as stage:
        if not stage.finished:
            _run(config, config.data.train, segmenter, stage)
        else:
            say(f"segmented: reused, {_summary(stage.manifest)} ({folder})")
        shutil.rmtree(folder / "work", ignore_errors=True)
    return folder


def _key(config: Config, source: Source, segmenter: Segmenter) -> dict[str, Any]:
    data = config.data
    return {
        "data": {
            "train": input_key(source),
            "on_error": data.on_error,
            "limit": data.limit,
            "shard_size": data.shard_size,
        },
        "segment": config.segment.model_dump(mode="json"),
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
        drafts, resumed = _draft(config, source, segmenter, stage.folder, rejects)
    except InputError:
        # The input has to change, and with it the key: what was drafted is of no use to the next run.
        shutil.rmtree(stage.folder / "work")
        (stage.folder / "key.json").unlink()
        raise
    kinds = join_kinds(draft.kinds for draft in drafts)
    names = rename(kinds, SCHEMA.names)
    for index in range(len(drafts)):
        write_part(stage.folder, index, kinds, names)
    (stage.folder / "work" / "rejects.jsonl").replace(stage.folder / "rejects.jsonl")
    counts = sum((draft.counts for draft in drafts), Counts())
    seconds = time.monotonic() - started
    timings = {"seconds": round(seconds, 3), "records_segmented": counts.records - resumed, "records_resumed": resumed}
    write_atomically(stage.folder / "timings.json", dump_json(timings) + "\n")
    stage.finish(
        seed=config.seed,
        versions=versions("spt-llm", "spacy", "pyarrow"),
        notes=list(segmenter.notes),
        parts={part_name(index): draft.counts.records for index, draft in enumerate(drafts)},
        columns={names[name]: stored for name, stored in describe(kinds).items()},
        counts={**counts.to_json(), "rejects": dict(rejects.counts)},
    )
    _tell(stage, kinds, names)


def _draft(
    config: Config, source: Source, segmenter: Segmenter, folder: Path, rejects: Rejects
) -> tuple[list[Draft], int]:
    """Return the drafts of all shards, and how many records an earlier run had segmented.

    Rejects are found anew on each run, since the corpus is read anew.
    """
    work = folder / "work"
    work.mkdir(exist_ok=True)
    policy: Callable[[CorpusError], None] = rejects if config.data.on_error == "reject" else stop
    records = read_records(source, reject=policy, limit=config.data.limit)
    drafts: list[Draft] = []
    resumed = 0
    with (
        (work / "rejects.jsonl").open("w", encoding="utf-8") as rejected,
        track("segment", config.data.limit, "records") as bar,
    ):
        for index in count():
            shard = list(islice(records, config.data.shard_size))
            rejected.writelines(_lines(rejects))
            if not shard:
                break
            draft = read_draft(work, index)
            resumed += len(shard) if draft else 0
            drafts.append(draft or write_draft(work, index, shard, segmenter.segment(shard)))
            bar.advance(len(shard))
    if not drafts:
        raise InputError(f"{_name(source)}: no record to segment; {_rejected(rejects.counts) or 'the corpus is empty'}")
    return drafts, resumed


def _lines(rejects: Rejects) -> Iterator[str]:
    for row in rejects.take():
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _tell(stage: Stage, kinds: dict[str, list[str]], names: dict[str, str]) -> None:
    for name, stored in describe(kinds).items():
        if names[name] != name:
            say(f"column {name!r} has a name of ours; it is kept as {names[name]!r}")
        if stored == "json" and kinds[name] != ["json"]:
            types = ", ".join(kinds[name])
            say(f"column {name!r} holds values of several types ({types}); it is kept as JSON text")
    say(f"segmented: {_summary(stage.manifest)} ({stage.folder})")


def _summary(manifest: dict[str, Any]) -> str:
    counts = manifest["counts"]
    words = sum(int(length) * units for length, units in counts["words_per_unit"].items())
    parts = [
        f"{counts['records']:,} records, {counts['sentences']:,} sentences, {counts['units']:,} units",
        f"{words / counts['units']:.1f} words a unit",
        _rejected(counts["rejects"]) or "none rejected",
    ]
    return ", ".join(parts)


def _rejected(counts: dict[str, int]) -> str:
    listed = ", ".join(f"{reason} {number:,}" for reason, number in sorted(counts.items()))
    return f"{sum(counts.values()):,} rejected ({listed})" if counts else ""


def _name(source: Source) -> str:
    return source.hub or ", ".join(source.paths)
