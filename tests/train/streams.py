"""The stream of a tiny experiment, and what its steps hold whatever the ranks and micro-batches."""

from dataclasses import replace
from pathlib import Path

from spt.config import read_config
from spt.encode import IGNORED
from spt.train.setup import prepare


def stream_of(path, *overrides, **fields):
    config = read_config(path, overrides)
    folder = Path(config.output) / "train"
    folder.mkdir(parents=True, exist_ok=True)
    stream, _ = prepare(config, folder)
    return replace(stream, **fields)


def examples_of(batches):
    """Return the (ids, labels) of every example, sorted; rows of weight zero hold none."""
    return sorted(
        (tuple(ids[:length].tolist()), tuple(labels[:length].tolist()))
        for batch in batches
        for ids, labels, length in zip(batch.input_ids, batch.labels, batch.lengths, strict=False)
    )


def learned_text(tokenizer, example):
    """Return the text of the tokens that are learned."""
    return tokenizer.decode([label for label in example[1] if label != IGNORED], skip_special_tokens=True)
