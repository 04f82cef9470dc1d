"""The evaluation stage: a trained folder (or any model) and questions → `evaluate/scores.jsonl` and `summary.json`.

Trade-off: the model is read back from disk, so that what is measured is what was saved.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
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
from spt.benchmark.questions import QuestionSet, hash_questions, read_questions
from spt.config import Config
from spt.errors import ConfigError, InputError, MissingError
from spt.model import fingerprint, load_base, load_trained
from spt.progress import say
from spt.records import Score
from spt.score.fluency import natural_by_grammar, natural_by_likelihood, sample_texts, share
from spt.score.likelihood import perplexity
from spt.score.questions import score_questions, spread
from spt.segment import make_segmenter
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
    place = model or str(_trained(config))
    folder = evaluate_folder(config)
    accelerator = Accelerator(cpu=not torch.accelerator.is_available())
    with open_stage(folder, key, force=force) if accelerator.is_main_process else nullcontext() as stage:
        finished = [stage is not None and stage.finished]
        if accelerator.num_processes > 1:
            broadcast_object_list(finished)
        if finished[0]:
            say(f"{folder}: finished before with the same settings, reused")
            return folder
        questions = read_questions(Path(config.data.questions.path))
        chosen = spread(questions.questions, config.evaluate.limit or len(questions.questions))
        # FSDP's settings would have transformers read the weights on one rank only; here each asks a model of its own.
        with patch_environment(FSDP_CPU_RAM_EFFICIENT_LOADING="false"):
            scores, rest = _measure(config, place, replace(questions, questions=tuple(chosen)), accelerator)
        if stage is not None:
            headline = config.evaluate.headline or questions.headline
            summary = summarise(scores, headline=headline, seed=config.seed)
            summary |= {"name": config.name, "model": place if model else "final", **rest}
            rows = "".join(dump_json(score_row(score), indent=None) + "\n" for score in scores)
            write_atomically(folder / "scores.jsonl", rows)
            write_atomically(folder / "summary.json", dump_json(summary) + "\n")
            stage.finish(name=config.name, questions=len(scores))
        accelerator.wait_for_everyone()
    return folder


def check_evaluation(config: Config) -> int:
    """Return how many questions will be asked, after checking all that evaluation reads besides the model.

    Raises QuestionError, ConfigError for a headline that is not measured, InputError for a neutral text.
    """
    if config.evaluate.neutral_text is not None:
        _neutral_lines(config.evaluate.neutral_text)
    if config.data.questions is None:
        return 0
    questions = read_questions(Path(config.data.questions.path))
    headline = config.evaluate.headline or questions.headline
    if headline not in config.evaluate.metrics:
        raise ConfigError(
            f"evaluate.metrics: {', '.join(config.evaluate.metrics)} lacks {headline}, the questions' headline; add "
            "it, or name another in evaluate.headline"
        )
    return len(questions.questions)


def _hash_code() -> str:
    below = (spt.records, spt.model, spt.segment, spt.permute, spt.benchmark, spt.encode, spt.batch, spt.loss)
    return hash_code(*below, spt.metrics, spt.statistics, spt.score)


def _trained(config: Config) -> Path:
    folder = Path(config.output) / "train"
    if not (folder / "manifest.json").exists():
        raise MissingError(f"{folder}: no finished training; run `spt train CONFIG` first, or give --model")
    return folder / "final"


def evaluate_key(config: Config, model: str | None = None) -> dict[str, Any]:
    """Return what the scores depend on.

    Raises MissingError where the model or a file is not there.
    """
    assert config.data.questions is not None
    place = model or str(_trained(config))
    neutral = config.evaluate.neutral_text
    return {
        "seed": config.seed,
        "questions": hash_questions(config.data.questions.path),
        "neutral_text": None if neutral is None else _neutral_lines(neutral),
        "model": fingerprint(place),
        "base": None if config.model.base is None else fingerprint(config.model.base, config.model.revision),
        "segment": config.segment.stored,
        "dtype": config.model.dtype,
        "evaluate": config.evaluate.model_dump(mode="json"),
        "versions": versions("torch", "transformers", "peft", "rouge-score", "sacrebleu"),
        "code": _hash_code(),
    }


def _measure(
    config: Config, place: str, questions: QuestionSet, accelerator: Accelerator
) -> tuple[list[Score], dict[str, Any]]:
    model, tokenizer = load_trained(place, dtype=config.model.dtype, trust_remote_code=config.model.trust_remote_code)
    model.to(accelerator.device)
    scores = score_questions(
        model, tokenizer, questions.questions, config.evaluate, seed=config.seed, accelerator=accelerator
    )
    rest: dict[str, Any] = {"fluency": None, "perplexity": None}
    if accelerator.is_main_process:
        if config.evaluate.fluency_samples:
            rest["fluency"] = _fluency(config, model, tokenizer, questions)
        if config.evaluate.neutral_text is not None:
            rest["perplexity"] = _perplexity(config, model, tokenizer, config.evaluate.neutral_text)
    return scores, rest


def _fluency(config: Config, model: Any, tokenizer: Any, questions: QuestionSet) -> dict[str, Any] | None:
    settings, count = config.evaluate, config.evaluate.fluency_samples
    base = None if questions.grammar is not None else _base(config, model)
    if questions.grammar is None and base is None:
        say("natural order: not measured, since without templates or a base model nothing can judge it")
        return None
    openings = [question.prompt for question in questions.questions]
    texts = sample_texts(
        model,
        tokenizer,
        openings,
        count=count,
        max_new_tokens=settings.max_new_tokens,
        batch_size=settings.batch_size,
        seed=config.seed,
    )
    samples = texts[:5]
    if questions.grammar is not None:
        natural = natural_by_grammar(texts, questions.grammar)
        return {
            "natural_order": share(natural, count),
            "rule": "accepted by the benchmark's templates",
            "samples": samples,
        }
    segmenter = make_segmenter(config.segment)
    with _without_adapter(base):
        natural = natural_by_likelihood(
            base, tokenizer, texts, segmenter, batch_size=settings.batch_size, seed=config.seed
        )
    rule = "more likely under the base model than four shuffles of its own units"
    return {"natural_order": share(natural, count), "rule": rule, "samples": samples}


def _base(config: Config, model: Any) -> Any:
    """Return the model before training: the adapter's own base, a fresh base, or None where there was none."""
    if hasattr(model, "disable_adapter"):
        return model
    return None if config.model.base is None else load_base(config.model).to(model.device)


def _without_adapter(model: Any) -> Any:
    return model.disable_adapter() if hasattr(model, "disable_adapter") else nullcontext()


def _neutral_lines(path: str) -> Sequence[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"evaluate.neutral_text: {path} cannot be read ({error}); give a UTF-8 text file") from None
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise InputError(f"evaluate.neutral_text: {path} holds no text; give lines of ordinary prose, or null")
    return texts


def _perplexity(config: Config, model: Any, tokenizer: Any, path: str) -> dict[str, Any]:
    texts = _neutral_lines(path)
    say(f"perplexity of {path}")
    after, tokens = perplexity(model, tokenizer, texts, config.evaluate.batch_size)
    base = _base(config, model)
    before = None
    if base is not None:
        with _without_adapter(base):
            before, _ = perplexity(base, tokenizer, texts, config.evaluate.batch_size)
    return {"before": before, "after": after, "n_tokens": tokens, "text": path}


def score_row(score: Score) -> dict[str, Any]:
    """Return a score as one flat JSON object: the question, the prediction, every metric and its floor."""
    row = {key: value for key, value in asdict(score.question).items() if value not in (None, ())}
    row |= {"prediction": score.prediction, **score.metrics}
    row |= {f"{name}_floor": value for name, value in score.floors.items()}
    row |= {"logprob": score.logprob, "target_tokens": score.target_tokens}
    return row | ({"distractor_logprobs": score.distractor_logprobs} if score.distractor_logprobs else {})
