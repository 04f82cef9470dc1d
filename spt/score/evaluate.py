"""The evaluation stage: a trained folder (or any model) and questions → `evaluate/scores.jsonl` and `summary.json`.

Trade-off: the model is read back from disk, so that what is measured is what was saved.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, patch_environment

import spt.batch
import spt.benchmark
import spt.encode
import spt.loss
import spt.metrics
import spt.model
import spt.permute
import spt.records
import spt.score
import spt.segment
import spt.statistics
from spt.artifact import dump_json, hash_code, open_stage, versions, write_atomically
from spt.benchmark.guards import hash_guards, read_guards
from spt.benchmark.questions import QuestionSet, hash_questions, read_questions
from spt.config import Config
from spt.errors import ConfigError, InputError, MissingError
from spt.model import fingerprint, load_trained
from spt.progress import say
from spt.records import Question
from spt.score.asked import Asked, LocalAsked
from spt.score.corpus import corpus_key
from spt.score.fluency import judge
from spt.score.guards import measure_guards
from spt.score.lengths import refuse_too_long
from spt.score.questions import chunk_size, score_chunks, spread
from spt.score.retention import neutral_texts
from spt.score.served import open_server, refuse_unanswered, server_notes, split_answered
from spt.score.server import server_key
from spt.score.stream import ScoreFile
from spt.statistics import summarise


def evaluate_folder(config: Config) -> Path:
    """Return where evaluation writes."""
    return Path(config.output) / "evaluate"


def evaluate(config: Config, *, model: str | None = None, force: bool = False) -> Path:
    """Return the finished evaluation folder, `OUTPUT/evaluate`; `model` (default: the trained one) may be any model.

    Under several ranks each answers its share and the main one writes. Raises MissingError, StaleError, QuestionError.
    """
    if config.data.questions is None:
        raise InputError("data.questions: nothing is asked; give path: questions.jsonl")
    key = evaluate_key(config, model)
    place = _place(config, model)
    folder = evaluate_folder(config)
    accelerator = Accelerator(cpu=not torch.accelerator.is_available())
    with open_stage(folder, key, force=force) if accelerator.is_main_process else nullcontext() as stage:
        finished = [stage is not None and stage.finished]
        if accelerator.num_processes > 1:
            broadcast_object_list(finished)
        if finished[0]:
            say(f"{folder}: finished before with the same settings, reused")
            return folder
        questions = read_questions(config.data.questions)
        headline = _headline(config, questions)
        chosen = spread(questions.questions, config.evaluate.limit or len(questions.questions))
        # FSDP's settings would have transformers read the weights on one rank only; here each asks a model of its own.
        with patch_environment(FSDP_CPU_RAM_EFFICIENT_LOADING="false"):
            asked, local = _open(config, place, accelerator, headline)
        if local is not None:
            refuse_too_long(*local, chosen, config.evaluate)
        chosen, lost = split_answered(asked, chosen, config.evaluate, config.seed)
        file = None if stage is None else ScoreFile(folder / "scores.jsonl", config.evaluate.metrics)
        _score(config, asked, chosen, file, accelerator)
        if stage is not None and file is not None:
            kept = replace(questions, questions=chosen)
            summary = summarise(file.read(), headline=headline, seed=config.seed)
            summary |= {"name": config.name, "model": place if model or config.evaluate.server else "final"}
            summary |= measure_guards(config, asked, kept, file.read(), folder=folder, local=local)
            summary |= server_notes(asked, lost)
            write_atomically(folder / "summary.json", dump_json(summary) + "\n")
            if config.evaluate.server is not None:
                refuse_unanswered(summary, lost, folder)
            stage.finish(name=config.name, questions=len(chosen))
        accelerator.wait_for_everyone()
    return folder


def check_evaluation(config: Config) -> int:
    """Return how many questions will be asked, after checking all that evaluation reads besides the model.

    Raises QuestionError, ConfigError for a headline that is not measured, InputError for a neutral text.
    """
    neutral_texts(config.evaluate.neutral_text)
    if config.data.questions is None:
        return 0
    questions = read_questions(config.data.questions)
    read_guards(config.data.questions.place)
    _headline(config, questions)
    return len(questions.questions)


def _headline(config: Config, questions: QuestionSet) -> str:
    """Return the headline metric.

    Raises ConfigError where it is not measured, or no question can be measured by it: before any is asked.
    """
    headline = config.evaluate.headline or questions.headline
    if headline not in config.evaluate.metrics:
        raise ConfigError(
            f"evaluate.metrics: {', '.join(config.evaluate.metrics)} lacks {headline}, the questions' headline; add "
            "it, or name another in evaluate.headline"
        )
    if headline == "choice" and not any(question.distractors for question in questions.questions):
        raise ConfigError(
            "evaluate.headline: choice needs distractors, and no question has any; name another of evaluate.metrics, "
            "or give the questions some"
        )
    return headline


def _hash_code() -> str:
    below = (spt.records, spt.model, spt.segment, spt.permute, spt.benchmark, spt.encode, spt.batch, spt.loss)
    return hash_code(*below, spt.metrics, spt.statistics, spt.score)


def _trained(config: Config) -> Path:
    folder = Path(config.output) / "train"
    if not (folder / "manifest.json").exists():
        raise MissingError(f"{folder}: no finished training; run `spt train CONFIG` first, or give --model")
    return folder / "final"


def _place(config: Config, model: str | None) -> str:
    """Return which model is asked: its folder or id, or what the server calls it."""
    server = config.evaluate.server
    if server is None:
        return model or str(_trained(config))
    if model is not None:
        raise InputError(f"--model {model}: evaluate.server says which model is asked; leave one of them out")
    return server.model


def evaluate_key(config: Config, model: str | None = None) -> dict[str, Any]:
    """Return what the scores depend on.

    Raises MissingError where the model or a file is not there.
    """
    assert config.data.questions is not None
    place, server = _place(config, model), config.evaluate.server
    local = (
        {
            "model": fingerprint(place),
            "base": None if config.model.base is None else fingerprint(config.model.base, config.model.revision),
            "judge": judge(config.segment.pipeline).key(),
            "dtype": config.model.dtype,
        }
        if server is None
        else {}
    )
    return {
        "seed": config.seed,
        "questions": hash_questions(config.data.questions),
        "guards": hash_guards(config.data.questions.place),
        "corpus": corpus_key(config),
        "neutral_text": neutral_texts(config.evaluate.neutral_text),
        **(local if server is None else {"server": server_key(server)}),
        "evaluate": config.evaluate.model_dump(mode="json", exclude={"server"}),
        "versions": versions("torch", "transformers", "peft", "rouge-score", "sacrebleu"),
        "code": _hash_code(),
    }


def _open(config: Config, place: str, accelerator: Accelerator, headline: str) -> tuple[Asked, tuple[Any, Any] | None]:
    """Return what is asked, and (model, tokenizer) where it is on this machine."""
    if config.evaluate.server is not None:
        return open_server(config.evaluate, evaluate_folder(config), accelerator.num_processes, headline), None
    model, tokenizer = load_trained(place, dtype=config.model.dtype, trust_remote_code=config.model.trust_remote_code)
    model.to(accelerator.device)
    return LocalAsked(model, tokenizer, config.evaluate), (model, tokenizer)


def _score(
    config: Config, asked: Asked, questions: Sequence[Question], file: ScoreFile | None, accelerator: Accelerator
) -> None:
    """Score the questions that the file, which the main process has, does not hold yet."""
    settings, world = config.evaluate, accelerator.num_processes
    done = [0 if file is None else file.resume(questions, chunk_size(settings, world))]
    if world > 1:
        broadcast_object_list(done)
    if done[0]:
        say(f"going on after {done[0]} of {len(questions)} questions that were scored before")
    for scores in score_chunks(asked, questions, settings, seed=config.seed, accelerator=accelerator, done=done[0]):
        if file is not None:
            file.append(scores)
