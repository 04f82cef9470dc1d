"""What training needs before its first step: the stage's key, the data, the model, the optimizer.

Each rank prepares by itself; what is written, the first to come writes under a file lock, and the others find it done.
In: an experiment. Out: its key, stream, model, optimizer and schedule. Trade-off: a key covers what changes
weights by more than rounding: how a step is spread over micro-batches, ranks and workers is left out.
"""

import os
from collections.abc import Iterable, Iterator
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

import spt.augment
import spt.batch
import spt.benchmark
import spt.checkpoint
import spt.config.permute
import spt.encode
import spt.loss
import spt.metrics
import spt.model
import spt.permute
import spt.records
import spt.score
import spt.statistics
import spt.train
from spt.artifact import hash_code, hash_file, versions
from spt.benchmark.questions import hash_questions
from spt.config import Config
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
from spt.model.attention import fit_attention, on_any_device
from spt.model.lean import keep_less
from spt.preprocess import check_segmented, find_segmented, load_segmented
from spt.preprocess.shards import SCHEMA
from spt.progress import say
from spt.records import Tag
from spt.train.budget import in_steps
from spt.train.log import trackers_of
from spt.train.mix import Mixture, mix_key, mix_texts, prepare_mix
from spt.train.stream import Stream

_FREE = {
    "dataloader_num_workers", "hub_model_id", "logging_steps", "micro_batch_size", "report_to", "save_steps",
    "save_total_limit",
}  # fmt: skip
"""Keys of `train` that change the weights by no more than rounding."""

_SCHEDULE_OURS = {"optimizer", "num_warmup_steps", "num_training_steps", "last_epoch"}
"""Arguments of a schedule that `train.warmup_ratio` and the plan decide."""


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
    check_segmented(manifest.parent, config.segment, config.augment)
    questions = config.data.questions if config.train.eval_steps is not None else None
    base = None if config.model.base is None else fingerprint(config.model.base, config.model.revision)
    return {
        "seed": config.seed,
        "segmented": hash_file(manifest),
        "mix": mix_key(config),
        "segment": config.segment.drawn,
        "augment": [entry.model_dump(mode="json") for entry in config.augment if not entry.stored],
        "permute": config.permute.model_dump(mode="json"),
        "model": config.model.model_dump(mode="json", exclude={"base"}) | {"base": base},
        "train": config.train.model_dump(mode="json", exclude=_FREE),
        "questions": None if questions is None else hash_questions(questions),
        "versions": versions("accelerate", "peft", "tokenizers", "torch", "transformers"),
        "evaluate": None if questions is None else config.evaluate.model_dump(mode="json"),
        "code": _hash_code(asking=questions is not None),
    }


def _hash_code(*, asking: bool) -> str:
    """Return the version of what computes the weights; where questions are asked, they say when to stop as well."""
    data = (spt.records, spt.config.permute, spt.augment, spt.permute, spt.encode, spt.batch)
    asked = (spt.benchmark, spt.metrics, spt.statistics, spt.score) if asking else ()
    return hash_code(*data, spt.loss, spt.model, spt.checkpoint, spt.train, *asked)


def prepare_tokenizer(config: Config, texts: Iterable[str], folder: Path) -> Any:
    """Return the tokenizer: the base's own, or one trained on the texts and kept in `folder/tokenizer`."""
    settings = config.model
    if settings.from_scratch is None:
        return load_tokenizer(settings)
    path = folder / "tokenizer"
    with FileLock(folder / ".tokenizer.lock"):
        if not path.exists():
            temporary = folder / ".tokenizer.tmp"
            tokenizer = train_tokenizer(texts, settings.from_scratch.vocab_size, config.signs)
            tokenizer.save_pretrained(temporary)
            os.replace(temporary, path)
    return read_tokenizer(str(path))


def _texts(data: Any, batch: int = 1000) -> Iterator[str]:
    for start in range(0, len(data), batch):
        yield from data[start : start + batch]["text"]


def prepare(config: Config, folder: Path) -> tuple[Stream, Prepared]:
    """Return (the stream of a single rank, model with tokenizer and tag); no rank waits for another's word."""
    trackers_of(config)
    if config.model.lora is not None:
        check_lora(config.model.lora)
    data = load_segmented(segmented_folder(config), folder / "cache").select_columns(SCHEMA.names)
    if not len(data):
        raise InputError(f"{segmented_folder(config)} holds no records; check the corpus and its rejects.jsonl")
    tokenizer = prepare_tokenizer(config, chain(_texts(data), mix_texts(config)), folder)
    mix = prepare_mix(config, tokenizer, folder)
    say(f"loading {config.model.base}" if config.model.base else "building a model from scratch")
    prepared = prepare_model(config.model, tokenizer, config.permute.order_tag, config.seed)
    fit_attention(prepared.model, packing=config.train.packing)
    if not config.train.torch_compile:  # a compiler chooses by itself what it keeps
        keep_less(prepared.model)
    with on_any_device(prepared.model):
        check_causal(prepared.model)
    mask_id = spt.loss.OBJECTIVES[config.train.objective].prepare(prepared)
    check_positions(prepared.model, config.train.max_length, "train.max_length")
    stream = make_stream(config, data, tokenizer, prepared.tag, mix, mask_id)
    make_scheduler(torch.optim.SGD([torch.zeros(1)], config.train.learning_rate), config.train, stream.total_steps)
    return stream, prepared


def make_stream(
    config: Config, data: Any, tokenizer: Any, tag: Tag | None, mix: Mixture | None, mask_id: int | None
) -> Stream:
    """Return the stream of a single rank; a budget in tokens has become steps."""
    settings = config.train
    encoder = Encoder(tokenizer, tag, settings.max_length, settings.too_long, settings.loss_on)
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    plan = config.segment, config.permute, settings, config.seed
    return in_steps(Stream(data, encoder, *plan, pad_id or 0, mix=mix, mask_id=mask_id, augment=config.augment))


def make_optimizer(model: Any, settings: TrainSettings) -> torch.optim.AdamW:
    """Return AdamW; weight decay leaves out norms and biases, and takes in embeddings, as transformers does."""
    decayed: list[Any] = []
    others: list[Any] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            shape = getattr(parameter, "ds_shape", parameter.shape)  # DeepSpeed leaves a parameter empty here
            (decayed if len(shape) > 1 else others).append(parameter)
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        fused=True,
    )


def make_scheduler(optimizer: Any, settings: TrainSettings, total_steps: int) -> Any:
    """Return the learning-rate schedule; it is stepped once a global step, on every rank alike.

    `constant` warms up too. `warmup_stable_decay` decays over the last tenth unless `num_decay_steps` is given. Raises
    InputError where `train.lr_scheduler_kwargs` do not fit the schedule.
    """
    from transformers import get_scheduler
    from transformers.optimization import TYPE_TO_SCHEDULER_FUNCTION
    from transformers.trainer_utils import SchedulerType

    chosen, given = settings.lr_scheduler_type, dict(settings.lr_scheduler_kwargs)
    name = SchedulerType("constant_with_warmup" if chosen == "constant" else chosen)
    known = {*signature(TYPE_TO_SCHEDULER_FUNCTION[name]).parameters} - _SCHEDULE_OURS
    try:
        if not given.keys() <= known:
            raise TypeError(f"unknown: {', '.join(sorted(given.keys() - known))}")
        if "num_decay_steps" in known:
            given.setdefault("num_decay_steps", max(round(total_steps / 10), 1))
        warmup = round(settings.warmup_ratio * total_steps)
        schedule = get_scheduler(name, optimizer, warmup, total_steps, given)
        for step in (warmup, total_steps // 2, total_steps):  # a value of the wrong kind shows when it is used
            float(schedule.lr_lambdas[0](step))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InputError(
            f"train.lr_scheduler_kwargs: {settings.lr_scheduler_kwargs} do not fit {chosen} ({error}); it takes "
            f"{', '.join(sorted(known)) or 'none'}, as in transformers"
        ) from None
    return schedule
