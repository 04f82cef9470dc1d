"""Drafting: the corpus is read, and its shards are cut, all of them or those of one rank.

    Record ──▶ Segmentation ──▶ draft

In: an experiment and its segmenter. Out: drafts, in the order of the corpus. Trade-off: every rank reads the whole
corpus, and rank 0 reads it twice, which is cheap beside cutting it: the second time it does what one process would, and
finds the drafts of all ranks there.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from spt.augment import augmented
from spt.augment.stored import Augmenter
from spt.config import Config, Source
from spt.corpus import Rejects, read_records, stop
from spt.errors import CorpusError, InputError
from spt.preprocess.counts import Counts
from spt.preprocess.ranks import Ranks
from spt.preprocess.shards import DRAFTS, Draft, hash_shard, read_draft, write_draft
from spt.preprocess.summary import rejections
from spt.preprocess.workers import Cut, cutter
from spt.progress import Bar, say, track
from spt.records import Record, Segmentation
from spt.segment import Segmenter
from spt.segment.protocol import Asking


@dataclass
class Drafted:
    """Drafts; of these, what was cut now, and how long cutting took (on the slowest rank).

    `augmented` counts what augmenters made and could not make.
    """

    drafts: list[Draft] = field(default_factory=list)
    augmented: Counter[str] = field(default_factory=Counter)
    fresh: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    asked: dict[str, int] = field(default_factory=dict)

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
            **self.asked,
        }

    def to_json(self) -> dict[str, Any]:
        """Return all but the drafts, for another rank."""
        return {"fresh": self.fresh.to_json(), "seconds": self.seconds, "asked": self.asked}

    def join(self, told: Mapping[str, Any]) -> None:
        """Count what another rank cut as cut now."""
        self.fresh += Counts.from_json(told["fresh"])
        self.seconds = max(self.seconds, told["seconds"])
        self.asked = {
            name: self.asked.get(name, 0) + told["asked"].get(name, 0) for name in {**self.asked, **told["asked"]}
        }


@dataclass(frozen=True)
class Drafter:
    """Drafts a corpus for the stage in `folder`, whose key says how it is cut."""

    config: Config
    source: Source
    segmenter: Segmenter
    augmenters: Mapping[str, Augmenter]
    folder: Path
    key: Mapping[str, Any]

    @property
    def work(self) -> Path:
        """Return the folder of drafts."""
        return self.folder / DRAFTS

    def own(self, ranks: Ranks) -> Drafted:
        """Return the drafts of this rank's own shards."""
        drafted = Drafted()
        self._draft(drafted, ranks.owns, lambda error: None)
        drafted.asked = self._asked()
        return drafted

    def all(self, ranks: Ranks, rejects: Rejects) -> Drafted:
        """Return the drafts of all shards, once every rank has cut its own; those of a rank that is gone are cut here.

        Rejects are found anew on each run, since the corpus is read anew. Raises InputError where there is no record.
        """
        drafted = self.own(ranks) if ranks.peers else Drafted()
        told = _hear(ranks)
        self.work.mkdir(exist_ok=True)
        with (self.work / "rejects.jsonl").open("w", encoding="utf-8") as rejected:

            def keep(error: CorpusError) -> None:
                rejects(error)
                rejected.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rejects.take())

            self._draft(drafted, lambda index: True, keep)
        if not drafted.drafts:
            place = self.source.hub or ", ".join(self.source.paths)
            raise InputError(f"{place}: no record to segment; {rejections(rejects.counts) or 'the corpus is empty'}")
        drafted.asked = self._asked()
        for one in told:
            drafted.join(one)
        return drafted

    def _draft(self, drafted: Drafted, owns: Callable[[int], bool], reject: Callable[[CorpusError], None]) -> None:
        drafted.drafts, drafted.augmented = [], Counter()
        with (
            track("segment", None if self.augmenters else self.config.data.limit, "records") as bar,
            cutter(self.config.segment, self.segmenter) as cut,
        ):
            for index, shard in enumerate(self._shards(reject, drafted.augmented)):
                if index == 0:
                    _check_column(self.config, shard)
                if owns(index):
                    drafted.drafts.append(self._draft_shard(cut, shard, index, drafted, bar))
                else:
                    bar.advance(len(shard))

    def _shards(self, reject: Callable[[CorpusError], None], counts: Counter[str]) -> Iterator[list[Record]]:
        data = self.config.data
        policy = reject if data.on_error == "reject" else stop
        records = augmented(read_records(self.source, reject=policy, limit=data.limit), self.augmenters, counts)
        while shard := list(islice(records, data.shard_size)):
            yield shard

    def _draft_shard(self, cut: Cut, shard: list[Record], index: int, drafted: Drafted, bar: Bar) -> Draft:
        of = hash_shard({name: self.key[name] for name in ("segment", "segmenter", "code")}, shard)
        draft = read_draft(self.work, index, of)
        if draft is not None:
            bar.advance(len(shard))
            return draft
        rows: list[Segmentation] = []
        started = time.monotonic()
        for chunk in cut(shard):
            rows += chunk
            bar.advance(len(chunk))
        drafted.seconds += time.monotonic() - started
        draft = write_draft(self.work, index, of, shard, rows)
        drafted.fresh += draft.counts
        return draft

    def _asked(self) -> dict[str, int]:
        return self.segmenter.counts() if isinstance(self.segmenter, Asking) else {}


def _hear(ranks: Ranks) -> list[Mapping[str, Any]]:
    """Return what each other rank says of the shards it cut, once it has."""
    if ranks.peers:
        say("segment: rank 0 has cut its shards and waits for the others")
    told = {other: ranks.wait(other, "drafted") for other in ranks.peers}
    for other in (other for other, said in told.items() if said is None):
        say(f"rank {other} gives no sign of life; rank 0 cuts the shards it has not cut")
    return [said["cut"] for said in told.values() if said is not None]


def _check_column(config: Config, shard: list[Record]) -> None:
    column = config.segment.names_column
    if column is not None and not any(column in record.columns for record in shard):
        there = sorted({name for record in shard for name in record.columns})
        raise InputError(
            f"segment.names_column: none of the first {len(shard)} records has a column {column!r}; they have "
            f"{', '.join(there) or 'no columns besides the text'}"
        )
