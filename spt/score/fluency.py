"""Does the model still speak in natural word order? Free generations, judged.

In: a model. Out: the share of samples at temperature 1 in natural order: those that the benchmark's grammar accepts,
or, on other corpora, those more likely under the base model than all of four shuffles of their own units. Trade-off:
the second rule needs the base model and counts a sample of one unit as natural.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from scipy.stats import binomtest

from spt.benchmark.questions import Grammar
from spt.encode import frame_of
from spt.permute import generator_for, permute
from spt.records import Record
from spt.score.generate import generate, prompt_ids
from spt.score.likelihood import log_probabilities
from spt.segment import Segmenter

SHUFFLES = 4


def sample_texts(
    model: Any, tokenizer: Any, openings: Sequence[str], *, count: int, max_new_tokens: int, batch_size: int, seed: int
) -> list[str]:
    """Return free generations: from the beginning token, or without one from the first token of `openings`."""
    prefix = list(frame_of(tokenizer).prefix)
    prompts = [prefix] * count if prefix else _first_tokens(tokenizer, openings, count, seed)
    return generate(
        model,
        tokenizer,
        prompts,
        max_new_tokens=max_new_tokens,
        batch_size=batch_size,
        sample_seed=seed,
        echo=True,
        label="free generations",
    )


def _first_tokens(tokenizer: Any, openings: Sequence[str], count: int, seed: int) -> list[list[int]]:
    ids = [row[:1] for row in prompt_ids(tokenizer, openings) if row]
    generator = generator_for(seed, 0, "fluency")
    return [generator.choice(ids) for _ in range(count)]


def natural_by_grammar(texts: Sequence[str], grammar: Grammar) -> int:
    """Return how many texts the benchmark's own templates accept."""
    return sum(grammar.accepts(text) for text in texts)


def natural_by_likelihood(
    base: Any, tokenizer: Any, texts: Sequence[str], segmenter: Segmenter, *, batch_size: int, seed: int
) -> int:
    """Return how many texts are more likely under the base model than all of four shuffles of their units."""
    records = [Record(str(number), text, "generated", number + 1) for number, text in enumerate(texts) if text.strip()]
    variants: list[str] = []
    for segmentation in segmenter.segment(records):
        generator = generator_for(seed, 0, segmentation.id)
        shuffles = [_shuffle(segmentation, generator) for _ in range(SHUFFLES)]
        variants += [segmentation.text, *shuffles]
    nats = [value for value, _ in log_probabilities(base, tokenizer, [("", text) for text in variants], batch_size)]
    groups = [nats[start : start + 1 + SHUFFLES] for start in range(0, len(nats), 1 + SHUFFLES)]
    same = [variants[start] for start in range(0, len(variants), 1 + SHUFFLES)]
    return sum(
        all(own > other or variants[number * (1 + SHUFFLES) + k] == same[number] for k, other in enumerate(others, 1))
        for number, (own, *others) in enumerate(groups)
    )


def _shuffle(segmentation: Any, generator: Random) -> str:
    return permute(segmentation, "shuffled", generator).text


def share(natural: int, count: int) -> dict[str, float]:
    """Return a share with its 95% Wilson interval."""
    interval = binomtest(natural, count).proportion_ci(method="wilson")
    return {"value": natural / count, "low": float(interval.low), "high": float(interval.high), "n": count}
