"""The data stage: corpus → `segmented/`.

    Record ──▶ Segmentation ──▶ draft ──▶ part ──▶ manifest

In: an experiment. Out: its segmented folder. A killed run reads the corpus again, which is cheap, and segments only the
shards that have no draft. When all are drafted, the types of the records' other columns are known, and the parts are
written. Trade-off: every row is written twice, so that a column whose type changes in the last row costs no rerun.
"""

import hashlib
import shutil
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import spt.augment
import spt.corpus
import spt.preprocess
import spt.records
import spt.segment
from spt.artifact import (
    Stage,
    changed_keys,
    dump_json,
    hash_code,
    hash_file,
    open_stage,
    read_json,
    versions,
    write_atomically,
)
from spt.augment import make_augmenters
from spt.augment.stored import Augmenter
from spt.config import Config
from spt.corpus import Rejects, input_key
from spt.errors import ConfigError, InputError, StaleError
from spt.preprocess.columns import describe, join_kinds, rename
from spt.preprocess.counts import Counts
from spt.preprocess.draft import Drafted, Drafter
from spt.preprocess.ranks import Ranks, joined
from spt.preprocess.read import check_segmented, find_segmented, stored_entries
from spt.preprocess.shards import DRAFTS, SCHEMA, part_name, write_part
from spt.preprocess.summary import details, summary_line
from spt.progress import say
from spt.segment import Segmenter, make_segmenter


def preprocess(config: Config, *, output: Path | None = None, force: bool = False) -> Path:
    """Return the segmented folder of an experiment, made if it is not there.

    It is `segmented` in `output` (default: the experiment's), or `data.segmented` where that is given. Under `torchrun`
    or `accelerate launch` every rank calls this and cuts its share of the shards; rank 0 writes. Raises InputError
    where there is no record to segment, CorpusError under `on_error: stop`, StaleError for another experiment's
    folder; ranks other than 0 then end with its exit code, in silence.
    """
    if config.data.segmented is not None:
        shared = find_segmented(config.data.segmented)
        check_segmented(shared, config.segment, config.augment)
        return shared
    if config.data.train is None:
        raise ConfigError("data.train: no corpus to segment; give data.train.path")
    place = Path(output or config.output)
    with joined(place) as ranks:
        if ranks.peers and "-" in config.data.train.paths:
            raise InputError("data.train.path: - (standard input) reaches one process only; save it to a file first")
        segmenter = make_segmenter(config.segment)
        augmenters = make_augmenters(config.augment)
        key = preprocess_key(config, segmenter, augmenters)
        drafter = Drafter(config, config.data.train, segmenter, augmenters, place / "segmented", key)
        if ranks.main:
            _write(drafter, ranks, force)
        else:
            _cut_share(drafter, ranks)
    return drafter.folder


def preprocess_key(
    config: Config, segmenter: Segmenter | None = None, augmenters: Mapping[str, Augmenter] | None = None
) -> dict[str, Any]:
    """Return what the segmented data depends on: the corpus, how it is read and cut, and the code that does it."""
    data = config.data
    assert data.train is not None
    segmenter = segmenter or make_segmenter(config.segment)
    augmenters = make_augmenters(config.augment) if augmenters is None else augmenters
    return {
        "data": {
            "train": input_key(data.train),
            "on_error": data.on_error,
            "limit": data.limit,
            "shard_size": data.shard_size,
        },
        "segment": config.segment.stored,
        "segmenter": segmenter.key(),
        "augment": stored_entries(config.augment),
        "augmenters": {name: augmenter.key() for name, augmenter in augmenters.items()}
        | ({"code": hash_code(spt.augment)} if augmenters else {}),
        "code": hash_code(spt.corpus, spt.segment, spt.preprocess, spt.records),
        "versions": versions("pyarrow"),
    }


def _write(drafter: Drafter, ranks: Ranks, force: bool) -> None:
    with open_stage(drafter.folder, drafter.key, force=force) as stage:
        ranks.tell("open", key=_hash(drafter.key), finished=stage.finished)
        if not stage.finished:
            _run(drafter, stage, ranks)
        else:
            say(f"segmented: reused, {summary_line(stage.manifest)} ({stage.folder})")
        shutil.rmtree(drafter.work, ignore_errors=True)


def _cut_share(drafter: Drafter, ranks: Ranks) -> None:
    """Cut what is this rank's share, once rank 0 has made the folder ready, and wait for the whole."""
    opened = ranks.wait(0, "open")
    assert opened is not None  # without rank 0, waiting raises
    if opened["key"] != _hash(drafter.key):
        listed = "\n  ".join(changed_keys(read_json(drafter.folder / "key.json"), drafter.key))
        raise StaleError(f"sees other inputs or software than rank 0:\n  {listed}\nMake them the same on each machine.")
    if not opened["finished"]:
        with ranks.listening():
            drafted = drafter.own(ranks)
        ranks.tell("drafted", cut=drafted.to_json())
    ranks.wait(0, "finished")


def _hash(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump_json(key).encode()).hexdigest()


def _run(drafter: Drafter, stage: Stage, ranks: Ranks) -> None:
    started = time.monotonic()
    for note in drafter.segmenter.notes:
        say(note)
    rejects = Rejects()
    try:
        with ranks.listening():
            drafted = drafter.all(ranks, rejects)
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
    augmented = {"augmented": dict(drafted.augmented)} if drafter.augmenters else {}
    timings = {"seconds": round(time.monotonic() - started, 3), **drafted.timings}
    write_atomically(stage.folder / "timings.json", dump_json(timings) + "\n")
    stage.finish(
        seed=drafter.config.seed,
        versions=versions("spt-llm", "spacy", "pyarrow"),
        notes=list(drafter.segmenter.notes),
        parts={
            name: {"rows": draft.counts.records, "sha256": hash_file(stage.folder / name)}
            for name, draft in zip(map(part_name, count()), drafts, strict=False)
        },
        columns={names[name]: stored for name, stored in describe(kinds).items()},
        counts={**counts.to_json(), **augmented, "rejects": dict(rejects.counts)},
    )
    _tell(stage, kinds, names, drafted)


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
