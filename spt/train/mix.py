"""General text learned beside the facts (`data.mix`): a second corpus, never permuted and never tagged.

In: an experiment and its tokenizer. Out: pieces of text that fit `train.max_length`, in one Arrow file under
`train/mix/`, and which of them each epoch takes. A long text is cut between words, so that all of it is learned and not
its beginning alone. Trade-off: the whole mix is encoded once before training, to know where its pieces end
(`data.mix.limit` reads less of it).
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from filelock import FileLock

import spt.corpus
from spt.artifact import dump_json, hash_code, read_json, write_atomically
from spt.batch import shuffled
from spt.config import Config
from spt.config.schema import Mix
from spt.corpus import Rejects, input_key, read_records, stop
from spt.encode import frame_of
from spt.errors import InputError
from spt.progress import say, track
from spt.records import Record

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string())])
CHUNK = 256
"""Texts encoded at once."""

MIX = "mix"
"""The `segmenter` of the mix's rows."""


@dataclass(frozen=True)
class Mixture:
    """The pieces of the mix: rows of `id` and `text`, their share of all examples, and what reading them counted."""

    rows: Any
    share: float
    counts: Mapping[str, Any]

    def per_epoch(self, facts: int) -> int:
        """Return how many pieces an epoch takes beside that many facts: `share` of all its examples, at least one."""
        return max(round(facts * self.share / (1 - self.share)), 1)

    def columns(self, indices: Sequence[int]) -> dict[str, list[Any]]:
        """Return pieces as rows of segmented data: one unit, which cannot move, and all of it learned."""
        rows, count = self.rows[list(indices)], len(indices)
        return {
            "id": rows["id"],
            "text": rows["text"],
            "cuts": [[]] * count,
            "sentences": [[0]] * count,
            "segmenter": [MIX] * count,
            "completion_start": [0] * count,
        }


def draw_pieces(pieces: int, per_epoch: int, *, seed: int, epoch: int) -> list[int]:
    """Return the pieces of an epoch: none twice before all were taken, over epochs; then anew in another order."""
    first = epoch * per_epoch
    rounds = range(first // pieces, (first + per_epoch - 1) // pieces + 1)
    orders = [shuffled(pieces, seed, number, 1) for number in rounds]
    start = first % pieces
    return [int(piece) for piece in np.concatenate(orders)[start : start + per_epoch]]


def mix_key(config: Config) -> dict[str, Any] | None:
    """Return what the mix adds to the training's key (None: there is no mix)."""
    mix = config.data.mix
    if mix is None:
        return None
    return {**input_key(mix), "share": mix.share, "limit": mix.limit, "code": hash_code(spt.corpus)}


def mix_texts(config: Config) -> Iterator[str]:
    """Yield the texts of the mix, whole: what a tokenizer of one's own learns beside the facts."""
    if config.data.mix is not None:
        yield from (record.text for record in _records(config, config.data.mix, Rejects()))


def prepare_mix(config: Config, tokenizer: Any, folder: Path) -> Mixture | None:
    """Return the mix of an experiment (None: it has none), made in `folder/mix` by whoever comes first.

    Raises what reading a corpus raises, and InputError where it holds no text.
    """
    import datasets

    mix, path = config.data.mix, folder / "mix"
    if mix is None:
        return None
    with FileLock(folder / ".mix.lock"):
        if not path.exists():
            _write(config, mix, tokenizer, folder)
    counts = read_json(path / "counts.json")
    say(f"mix: {counts['texts']:,} texts in {counts['pieces']:,} pieces, {mix.share:.0%} of the examples")
    return Mixture(datasets.Dataset.from_file(str(path / "pieces.arrow")), mix.share, counts)


def _records(config: Config, mix: Mix, rejects: Rejects) -> Iterator[Record]:
    return read_records(mix, reject=rejects if config.data.on_error == "reject" else stop, limit=mix.limit)


def _write(config: Config, mix: Mix, tokenizer: Any, folder: Path) -> None:
    temporary = folder / ".mix.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    frame, rejects = frame_of(tokenizer), Rejects()
    room = config.train.max_length - len(frame.prefix) - len(frame.suffix)
    records = _records(config, mix, rejects)
    texts = pieces = 0
    with (
        pa.ipc.new_stream(str(temporary / "pieces.arrow"), SCHEMA) as file,
        track("read the mix", mix.limit, "texts") as bar,
    ):
        while chunk := list(islice(records, CHUNK)):
            rows = list(_pieces(tokenizer, chunk, room))
            file.write_batch(pa.record_batch([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA))
            texts, pieces = texts + len(chunk), pieces + len(rows)
            bar.advance(len(chunk))
    if not pieces:
        raise InputError(f"data.mix: {mix.hub or ', '.join(mix.paths)} holds no text; give another corpus, or no mix")
    rejected = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rejects.take())
    write_atomically(temporary / "rejects.jsonl", rejected)
    counts = {"texts": texts, "pieces": pieces, "rejects": dict(rejects.counts)}
    write_atomically(temporary / "counts.json", dump_json(counts) + "\n")
    os.replace(temporary, folder / "mix")


def _pieces(tokenizer: Any, records: Sequence[Record], room: int) -> Iterator[tuple[str, str]]:
    """Yield (id, text) of each piece; a slow tokenizer does not tell where to cut: its texts go on whole."""
    spans: Sequence[Any] = [()] * len(records)
    if tokenizer.is_fast:
        texts = [record.text for record in records]
        spans = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    for record, own in zip(records, spans, strict=True):
        pieces = cut_to_fit(record.text, own, room)
        for number, piece in enumerate(pieces, 1):
            yield f"mix:{record.id}" + (f"#{number}" if len(pieces) > 1 else ""), piece


def cut_to_fit(text: str, spans: Sequence[tuple[int, int]], room: int) -> list[str]:
    """Return a text in pieces of at most `room` tokens, which joined are the text, cut beside white space if possible.

    `spans` are the characters of its tokens. Encoded alone a piece may have other tokens at its ends, and so one or two
    more; `train.too_long` then says what becomes of it, and counts it.
    """
    pieces, first, start = [], 0, 0
    while len(spans) - first > room:
        stop = _last_cut(text, spans, first, first + room)
        pieces.append(text[start : spans[stop][0]])
        first, start = stop, spans[stop][0]
    return [piece for piece in (*pieces, text[start:]) if piece.strip()]


def _last_cut(text: str, spans: Sequence[tuple[int, int]], first: int, stop: int) -> int:
    """Return the last token up to `stop` before which a text may be cut: at white space, else between characters."""
    # A token that stands for white space at the end may begin after the last character.
    starts = ((k, spans[k][0]) for k in range(stop, first, -1))
    between = [k for k, at in starts if spans[first][0] < at < len(text) and spans[k - 1][1] <= at]
    for k in between:
        at = spans[k][0]
        if text[at].isspace() or text[at - 1].isspace():
            return k
    if between:
        return between[0]
    # A single character of more tokens than there is room for: cut after it.
    return next((k for k in range(stop, len(spans)) if spans[k][0] > spans[first][0]), len(spans) - 1)
