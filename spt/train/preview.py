"""The stream of training before training: steps, examples, tokens, and the first batch, for `--dry-run`.

In: an experiment. Out: counts of its first steps as one device would see them. Nothing is written: what `spt train`
keeps on disk goes to a temporary folder. Trade-off: of a corpus that is not segmented yet the first records are read,
with those that `augment` makes of them unless it asks a language model, each as one unit, so that every order is the
original one.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spt.augment import augmented, make_augmenters
from spt.batch import Batch
from spt.config import Config
from spt.corpus import Rejects, read_records, stop
from spt.errors import InputError
from spt.loss import OBJECTIVES
from spt.model import load_tokenizer, read_tokenizer, train_tokenizer
from spt.model.tag import choose_tag
from spt.preprocess import load_segmented
from spt.progress import say
from spt.records import Tag
from spt.train.budget import EXAMPLES
from spt.train.mix import mix_texts, prepare_mix
from spt.train.setup import make_stream, segmented_folder, train_folder
from spt.train.stream import Stream

RECORDS = 10_000
"""Records read of a corpus that is not segmented yet, those that `augment` makes among them."""


@dataclass(frozen=True)
class Preview:
    """What training would see. `largest`: the micro-batch with the most positions among `peeked` examples.

    `segmented`: the corpus is cut; otherwise `records` are the first ones alone where they are `RECORDS`. `filled`: the
    share of positions that are not padding. `first`: the first micro-batch, or the first whose objective masks tokens;
    it is learned at `first_step`, counted from 0.
    """

    tokenizer: Any
    tag: Tag | None
    segmented: bool
    records: int
    steps: int
    steps_per_epoch: int
    examples: int
    tokens: int
    peeked: int
    filled: float
    largest: Batch
    first: Batch
    first_step: int

    @property
    def whole(self) -> bool:
        """Return whether all records were counted."""
        return self.segmented or self.records < RECORDS


def preview(config: Config, devices: int) -> Preview:
    """Return what the first of `devices` devices would see of the first steps.

    Raises what reading the corpus, the segmented data or the tokenizer raises.
    """
    with TemporaryDirectory() as temporary:
        segmented = (segmented_folder(config) / "manifest.json").exists()
        data = load_segmented(segmented_folder(config), Path(temporary)) if segmented else _first_records(config)
        if not len(data):
            raise InputError("the corpus holds no records; check data.train")
        tokenizer = _tokenizer(config, data)
        tag = choose_tag(tokenizer, config.permute.order_tag)
        mix = prepare_mix(config, tokenizer, Path(temporary))
        mask_id = OBJECTIVES[config.train.objective].choose_mask(tokenizer, tag)
        stream = make_stream(config, data, tokenizer, tag, mix, mask_id)
        return _peek(stream, devices, tokenizer, tag, segmented)


def _first_records(config: Config) -> Any:
    from datasets import Dataset

    if config.data.train is None:
        raise InputError("data.segmented names no finished segmented data, and there is no data.train")
    reject = Rejects() if config.data.on_error == "reject" else stop
    for entry in config.augment:
        if entry.asks:
            say(f"augment.{entry.name}: what a language model adds is counted once the corpus is segmented")
    augmenters = make_augmenters(entry for entry in config.augment if not entry.asks)
    read = read_records(config.data.train, reject=reject, limit=config.data.limit)
    records = list(islice(augmented(read, augmenters, Counter()), RECORDS))
    columns = {
        "id": [record.id for record in records],
        "text": [record.text for record in records],
        "cuts": [[] for _ in records],
        "sentences": [[0] if record.text else [] for record in records],
        "segmenter": ["none"] * len(records),
        "completion_start": [record.completion_start for record in records],
    }
    return Dataset.from_dict(columns)


def _tokenizer(config: Config, data: Any) -> Any:
    if config.model.from_scratch is None:
        return load_tokenizer(config.model)
    own = train_folder(config) / "tokenizer"
    if own.exists():
        return read_tokenizer(str(own))
    texts = chain(data["text"], mix_texts(config))
    return train_tokenizer(texts, config.model.from_scratch.vocab_size, config.signs)


def _peek(stream: Stream, devices: int, tokenizer: Any, tag: Tag | None, segmented: bool) -> Preview:
    count = max(min(stream.total_steps, EXAMPLES // stream.train.batch_size), 1)
    steps = [stream.step(number) for number in range(count)]
    peeked = sum(len(step.ids) for step in steps)
    tokens = sum(batch.tokens for step in steps for batch in step.batches)
    # The first rank gets the longest examples of each step.
    first = replace(stream, world_size=devices)
    ranked = [first.step(number) for number in range(count)]
    own = [batch for step in ranked for batch in step.batches]
    masked = (number for number, step in enumerate(ranked) if step.batches[0].visible is not None)
    shown = next(masked, 0)
    examples = _examples(stream)
    return Preview(
        tokenizer=tokenizer,
        tag=tag,
        segmented=segmented,
        records=len(stream.data),
        steps=stream.total_steps,
        steps_per_epoch=stream.steps_per_epoch,
        examples=examples,
        tokens=round(tokens * examples / peeked),
        peeked=peeked,
        filled=sum(batch.tokens for batch in own) / sum(batch.size for batch in own),
        largest=max(own, key=lambda batch: batch.size),
        first=ranked[shown].batches[0],
        first_step=shown,
    )


def _examples(stream: Stream) -> int:
    epochs, left = divmod(stream.total_steps, stream.steps_per_epoch)
    return epochs * stream.examples_per_epoch + min(left * stream.train.batch_size, stream.examples_per_epoch)
