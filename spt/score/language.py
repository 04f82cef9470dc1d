"""What training did to the model's language: fluency and retention, measured together.

In: a model on this machine, the set's grammar, and the corpus. Out: `summary["fluency"]`, `summary["perplexity"]` and
their two guards. Trade-off: the trained model says everything first, and the base judges it after, so that either is
in use once.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from spt.benchmark.questions import Grammar
from spt.config import Config
from spt.progress import say
from spt.records import join_texts
from spt.score import fluency
from spt.score.before import has_before, model_before
from spt.score.finding import Finding, not_measured
from spt.score.fluency import Opening, share
from spt.score.likelihood import log_probabilities
from spt.score.retention import LABEL, RULE, neutral_texts, perplexities, retention


def measure_language(
    config: Config,
    model: Any,
    tokenizer: Any,
    *,
    grammar: Grammar | None,
    prompts: Iterable[str],
    openings: Sequence[Opening],
) -> dict[str, Any]:
    """Return {"fluency", "perplexity", "guards"}; what nothing here can judge is None, or says why."""
    settings = config.evaluate
    texts: list[str] = []
    more: list[str] = []
    if settings.fluency_samples and (grammar is not None or has_before(config, model)):
        texts, more = _speak(config, model, tokenizer, prompts, openings)
    neutral = [("", text) for text in neutral_texts(settings.neutral_text)]
    after = log_probabilities(model, tokenizer, neutral, settings.batch_size)
    with model_before(config, model, tokenizer) as base:
        natural = _natural(config, base, tokenizer, grammar, texts, openings, more)
        if base is None or not more:
            continued = not_measured(fluency.LABEL, fluency.RULE, _why_not(config, base, openings), unit="ratio")
        else:
            continued = fluency.as_likely_as_the_corpus(base, tokenizer, openings, more, settings.batch_size)
        before = None if base is None else log_probabilities(base, tokenizer, neutral, settings.batch_size)
    return {
        "fluency": natural,
        "perplexity": perplexities(before, after, settings.neutral_text),
        "guards": {"fluency": continued, "retention": retention(before, after)},
    }


def language_elsewhere() -> dict[str, Finding]:
    """Return the two guards of a model that is not on this machine, which say so."""
    reason = "the model is behind a server, which gives no free generations and no perplexity of texts"
    return {
        "fluency": not_measured(fluency.LABEL, fluency.RULE, reason, unit="ratio"),
        "retention": not_measured(LABEL, RULE, reason, unit="ratio"),
    }


def _speak(
    config: Config, model: Any, tokenizer: Any, prompts: Iterable[str], openings: Sequence[Opening]
) -> tuple[list[str], list[str]]:
    settings = config.evaluate
    sizes = {"max_new_tokens": settings.max_new_tokens, "batch_size": settings.batch_size, "seed": config.seed}
    texts = fluency.sample_texts(model, tokenizer, prompts, count=settings.fluency_samples, **sizes)
    return texts, fluency.continue_openings(model, tokenizer, openings, **sizes) if openings else []


def _natural(
    config: Config,
    base: Any,
    tokenizer: Any,
    grammar: Grammar | None,
    texts: Sequence[str],
    openings: Sequence[Opening],
    continuations: Sequence[str],
) -> dict[str, Any] | None:
    if not texts or (grammar is None and base is None):
        if config.evaluate.fluency_samples:
            say("natural order: not measured, since without templates or a base model nothing can judge it")
        return None
    whole = [join_texts(opening.text, text) for opening, text in zip(openings, continuations, strict=True)]
    if grammar is not None:
        rule = "accepted by the benchmark's templates"
        counts = [fluency.natural_by_grammar(some, grammar) for some in (texts, whole)]
    else:
        segmenter = fluency.judge(config.segment.pipeline)
        rule = f"more likely under the base model than four shuffles of its own units (segmenter {segmenter.name})"
        sizes = {"batch_size": config.evaluate.batch_size, "seed": config.seed}
        counts = [fluency.natural_by_likelihood(base, tokenizer, some, segmenter, **sizes) for some in (texts, whole)]
    result = {"natural_order": share(counts[0], len(texts)), "rule": rule, "samples": list(texts[:5])}
    return result | {"continuations": share(counts[1], len(whole)) if whole else None}


def _why_not(config: Config, base: Any, openings: Sequence[Opening]) -> str:
    if not config.evaluate.fluency_samples:
        return "evaluate.fluency_samples is 0"
    if base is None:
        return "there is no base model to judge by"
    assert not openings
    return "there is no segmented corpus to take openings from"
