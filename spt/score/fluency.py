"""Does the model still speak in natural word order? Free generations and continuations, judged.

In: a model, and openings of corpus texts. Out: the share of samples at temperature 1 in natural order: those that the
benchmark's grammar accepts, or, on other corpora, those more likely under the base model than all of four shuffles of
their own units; and how likely the continuations are under the base model beside the corpus's own. Trade-off: the
second rule needs the base model and counts a sample of one unit as natural. Its units are those of one segmenter for
every run (`judge`), not the experiment's: with sentences for units, everything would be natural.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

from scipy.stats import binomtest

from spt.benchmark.questions import Grammar
from spt.encode import frame_of
from spt.errors import MissingError
from spt.permute import generator_for, permute
from spt.records import Record
from spt.score.finding import Finding, finding, not_measured
from spt.score.generate import generate, prompt_ids
from spt.score.likelihood import log_probabilities
from spt.score.retention import ratio
from spt.segment import Segmenter
from spt.segment.spacy_units import SpacySegmenter
from spt.segment.word import WordSegmenter

SHUFFLES = 4
LONGEST = 200
"""Characters of a sentence that are halved at most: any model has room for them."""
TOKENIZED = 4096
"""Openings whose tokens are in memory at once."""
LABEL = "fluency of continuations"
RULE = (
    "perplexity under the base model of what the model goes on with after openings of training texts (temperature 1) "
    "/ of what stands there in the corpus, averaged over a text's tokens, then over texts: 1 is as likely as the "
    "corpus, more is worse"
)


@dataclass(frozen=True)
class Opening:
    """The first half of a text's first sentence, and the rest of it."""

    text: str
    rest: str


def judge(pipeline: str) -> Segmenter:
    """Return the segmenter whose units are shuffled: `spacy` where the pipeline is installed, else `word`."""
    try:
        return SpacySegmenter(pipeline)
    except MissingError:
        return WordSegmenter()


def open_sentence(sentence: str) -> Opening | None:
    """Return a sentence in halves, cut between words (without white space: anywhere); None for a single character.

    Of a long one only its first LONGEST characters are taken, back to the last white space among them.
    """
    sentence = sentence.strip()
    if len(sentence) > LONGEST:
        sentence = sentence[:LONGEST].rsplit(maxsplit=1)[0]
    words = sentence.split()
    if len(words) > 1:
        left = " ".join(words[: (len(words) + 1) // 2])
        return Opening(left, " ".join(words[(len(words) + 1) // 2 :]))
    middle = (len(sentence) + 1) // 2
    return Opening(sentence[:middle], sentence[middle:]) if len(sentence) > 1 else None


def sample_texts(
    model: Any, tokenizer: Any, openings: Iterable[str], *, count: int, max_new_tokens: int, batch_size: int, seed: int
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


def continue_openings(
    model: Any, tokenizer: Any, openings: Sequence[Opening], *, max_new_tokens: int, batch_size: int, seed: int
) -> list[str]:
    """Return what the model goes on with after each opening, sampled at temperature 1."""
    prompts = prompt_ids(tokenizer, [opening.text for opening in openings])
    return generate(
        model, tokenizer, prompts, max_new_tokens=max_new_tokens, batch_size=batch_size, sample_seed=seed,
        label="continuations",
    )  # fmt: skip


def _first_tokens(tokenizer: Any, openings: Iterable[str], count: int, seed: int) -> list[list[int]]:
    ids, texts = array("i"), iter(openings)
    while some := list(islice(texts, TOKENIZED)):
        ids.extend(row[0] for row in prompt_ids(tokenizer, some) if row)
    generator = generator_for(seed, 0, "fluency")
    return [[generator.choice(ids)] for _ in range(count)]


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


def as_likely_as_the_corpus(
    base: Any, tokenizer: Any, openings: Sequence[Opening], continuations: Sequence[str], batch_size: int
) -> Finding:
    """Return how much less likely than the corpus the continuations are under the base; empty ones are counted."""
    said = [(o, text) for o, text in zip(openings, continuations, strict=True) if text.strip()]
    if not said:
        return not_measured(LABEL, RULE, "the model went on with nothing after any opening", unit="ratio")
    pairs = [(o.text, text) for o, text in said] + [(o.text, o.rest) for o, _ in said]
    a_token = [nats / tokens for nats, tokens in log_probabilities(base, tokenizer, pairs, batch_size)]
    own, corpus = a_token[: len(said)], a_token[len(said) :]
    less = [theirs - ours for ours, theirs in zip(own, corpus, strict=True)]
    numbers = [number for number, text in enumerate(continuations) if text.strip()]
    return finding(
        LABEL, RULE,
        **ratio(less, [1.0] * len(said)),
        parts=[(str(number), lost, 1.0) for number, lost in zip(numbers, less, strict=True)],
        n=len(said),
        unit="ratio",
        empty=len(openings) - len(said),
        nats_per_token={"continuations": -sum(own) / len(own), "corpus": -sum(corpus) / len(corpus)},
        examples=[{"opening": o.text, "continuation": text, "corpus": o.rest} for o, text in said[:5]],
    )  # fmt: skip


def share(natural: int, count: int) -> dict[str, float]:
    """Return a share with its 95% Wilson interval."""
    interval = binomtest(natural, count).proportion_ci(method="wilson")
    return {"value": natural / count, "low": float(interval.low), "high": float(interval.high), "n": count}
