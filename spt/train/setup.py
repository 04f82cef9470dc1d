"""What training needs before its first step: the stage's key, the data, the model, the optimizer.

Everything slow happens before a process group exists, under a file lock: the first process prepares, the others find it
done. Trade-off: every rank reads the rows of a whole global batch, to sort them, and encodes its own part alone.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

import spt.batch
import spt.checkpoint
import spt.encode
import spt.loss
import spt.model
import spt.permute
import spt.records
import spt.train
from spt.artifact import hash_code, hash_file, versions
from spt.batch import Batch, collate, plan_epoch, split_step, steps_per_epoch
from spt.benchmark.questions import hash_questions
from spt.config import Config, Permute, Segment
from spt.config import Train as TrainSettings
from spt.encode import Encoder
from spt.errors import InputError, MissingError
from spt.model import (
    Prepared,
    check_causal,
    check_lora,
    check_positions,
    fingerprint,
    load_tokenizer,
    prepare_model,
    read_tokenizer,
    train_tokenizer,
)
from spt.permute import draw_ordering
from spt.preprocess import check_segmented, find_segmented, load_segmented
from spt.progress import say
from spt.records import Segmentation

_FREE = {"logging_steps", "save_steps", "save_total_limit"}
"""Keys of `train` that change nothing in the weights."""


def train_folder(config: Config) -> Path:
    """Return where training writes."""
    return Path(config.output) / "train"


def segmented_folder(config: Config) -> Path:
    """Return the segmented data that a run learns from: its own, or that of `data.segmented`."""
    if config.data.segmented is None:
        return Path(config.output) / "segmented"
    return find_segmented(config.data.segmented)


def train_key(config: Config) -> dict[str, Any]:
    """Return what the trained weights and the log depend on.

    Raises MissingError where the segmented data is not finished, StaleError where it was cut in another way.
    """
    manifest = segmented_folder(config) / "manifest.json"
    if not manifest.exists():
        raise MissingError(f"{manifest.parent}: no finished segmented data; run `spt preprocess CONFIG` first")
    check_segmented(manifest.parent, config.segment)
    questions = config.data.questions if config.train.eval_steps is not None else None
    base = None if config.model.base is None else fingerprint(config.model.base, config.model.revision)
    return {
        "seed": config.seed,
        "segmented": hash_file(manifest),
        "segment": config.segment.drawn,
        "permute": config.permute.model_dump(mode="json"),
        "model": config.model.model_dump(mode="json", exclude={"base"}) | {"base": base},
        "train": config.train.model_dump(mode="json", exclude=_FREE),
        "questions": None if questions is None else hash_questions(questions.path),
        "versions": versions("accelerate", "peft", "tokenizers", "torch", "transformers"),
        "evaluate": None if questions is None else config.evaluate.model_dump(mode="json"),
        "code": hash_code(
            spt.records, spt.permute, spt.encode, spt.batch, spt.loss, spt.model, spt.checkpoint, spt.train
        ),
    }


def prepare_tokenizer(config: Config, data: Any, folder: Path) -> Any:
    """Return the tokenizer: the base's own, or one trained on the corpus and kept in `folder/tokenizer`."""
    settings = config.model
    if settings.from_scratch is None:
        return load_tokenizer(settings)
    path = folder / "tokenizer"
    with FileLock(folder / ".tokenizer.lock"):
        if not path.exists():
            temporary = folder / ".tokenizer.tmp"
            tokenizer = train_tokenizer(_texts(data), settings.from_scratch.vocab_size)
            tokenizer.save_pretrained(temporary)
            os.replace(temporary, path)
    return read_tokenizer(str(path))


def _texts(data: Any, batch: int = 1000) -> Iterator[str]:
    for start in range(0, len(data), batch):
        yield from data[start : start + batch]["text"]


@dataclass(frozen=True)
class Stream:
    """The examples of training, as a pure function of seed and step.

    `rank` and `world_size` choose a part of each global batch; they never change what it holds.
    """

    data: Any
    encoder: Encoder
    segment: Segment
    permute: Permute
    train: TrainSettings
    seed: int
    pad_id: int
    rank: int = 0
    world_size: int = 1

    @property
    def steps_per_epoch(self) -> int:
        """Return the number of global steps in one epoch."""
        return steps_per_epoch(len(self.data), self.train.batch_size)

    @property
    def total_steps(self) -> int:
        """Return the number of global steps of the whole training."""
        steps = self.steps_per_epoch * self.train.epochs
        return min(steps, self.train.max_steps or steps)

    def steps(self, done: int) -> Iterator[tuple[list[str], list[Batch]]]:
        """Yield (record ids of the global batch, this rank's micro-batches) for every step after the first `done`."""
        per_epoch = self.steps_per_epoch
        for epoch in range(done // per_epoch, self.train.epochs):
            plan = plan_epoch(len(self.data), self.train.batch_size, seed=self.seed, epoch=epoch)
            first, last = max(done - epoch * per_epoch, 0), max(self.total_steps - epoch * per_epoch, 0)
            for indices in plan[first:last]:
                rows = self.data[indices]
                yield rows["id"], self._micro_batches(rows, epoch)

    def _micro_batches(self, rows: dict[str, list[Any]], epoch: int) -> list[Batch]:
        lengths = [len(text) for text in rows["text"]]
        parts = split_step(lengths, self.train.micro_batch_size, rank=self.rank, world_size=self.world_size)
        batches = []
        for part in parts:
            orderings = [
                draw_ordering(segmentation_at(rows, position), self.permute, self.segment, seed=self.seed, epoch=epoch)
                for position in part
            ]
            batches.append(collate(self.encoder.encode(orderings), self.pad_id))
        return batches


def segmentation_at(rows: dict[str, list[Any]], position: int) -> Segmentation:
    """Return one row of a batch of columns as a Segmentation."""
    return Segmentation(
        id=rows["id"][position],
        text=rows["text"][position],
        cuts=tuple(rows["cuts"][position]),
        sentences=tuple(rows["sentences"][position]),
        segmenter=rows["segmenter"][position],
        completion_start=rows["completion_start"][position],
    )


def prepare(config: Config, folder: Path) -> tuple[Any, Prepared]:
    """Return (data, model with tokenizer and tag), made before any process group exists."""
    if config.model.lora is not None:
        check_lora(config.model.lora)
    data = load_segmented(segmented_folder(config), folder / "cache")
    if not len(data):
        raise InputError(f"{segmented_folder(config)} holds no records; check the corpus and its rejects.jsonl")
    tokenizer = prepare_tokenizer(config, data, folder)
    say(f"loading {config.model.base}" if config.model.base else "building a model from scratch")
    prepared = prepare_model(config.model, tokenizer, config.permute.order_tag, config.seed)
    check_causal(prepared.model)
    check_positions(prepared.model, config.train.max_length, "train.max_length")
    return data, prepared


def make_optimizer(model: Any, settings: TrainSettings) -> torch.optim.AdamW:
    """Return AdamW; weight decay leaves out norms and biases, as is usual."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        fused=True,
    )


def make_scheduler(optimizer: Any, settings: TrainSettings, total_steps: int) -> Any:
    """Return the learning-rate schedule; it is stepped once a global step, on every rank alike."""
    from transformers import get_scheduler

    warmup = round(settings.warmup_ratio * total_steps)
    name = "constant_with_warmup" if settings.lr_scheduler_type == "constant" else settings.lr_scheduler_type
    return get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=total_steps)
