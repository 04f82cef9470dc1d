"""Prompt and continuations → log-probabilities in nats, teacher-forced.

Prompt and continuation are encoded as one text and split by characters: a token that spans the border belongs to the
continuation, which therefore is never empty, and so does the white space between them (as in lm-evaluation-harness),
but for that which a chat template ends in. Continuations of one prompt share its computation (`spt.score.tree`), and
logits are made only where something is predicted. Trade-off: an architecture that cannot read a tree, which a probe
tells, reads each continuation with its prompt.
"""

from collections.abc import Sequence
from reprlib import repr as shortened
from typing import Any

import torch

from spt.encode import IGNORED, frame_of
from spt.errors import ModelError
from spt.model import answering, check_positions
from spt.records import Example, join_texts
from spt.score.batches import Budget
from spt.score.forest import read_trees, widest_tree
from spt.score.tree import Tree, chains, grow

Pair = tuple[str, str]
Group = tuple[str, Sequence[str]]
TOKENS = 8192
"""Tokens in a batch, padding included, where no other number is asked for."""


def continuation_examples(tokenizer: Any, pairs: Sequence[Pair], *, templated: bool = False) -> list[Example]:
    """Return each (prompt, continuation) as an example whose labels are the continuation's tokens.

    A continuation that begins at the first token follows the end token where the tokenizer adds no beginning: otherwise
    nothing would predict it. `templated` prompts come out of a chat template, and their white space is their own.

    Raises ModelError for a tokenizer that does not tell where its tokens stand.
    """
    if not pairs:
        return []
    if not tokenizer.is_fast:
        raise ModelError(
            f"{tokenizer.name_or_path}: a slow tokenizer gives no offsets; save its fast version and use that"
        )
    frame = frame_of(tokenizer)
    texts = [join_texts(prompt, continuation) for prompt, continuation in pairs]
    encoded = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    examples = []
    for number, (prompt, _) in enumerate(pairs):
        ids, spans = encoded["input_ids"][number], encoded["offset_mapping"][number]
        border = len(prompt if templated else prompt.rstrip())
        labels = [token if end > border else IGNORED for token, (_, end) in zip(ids, spans, strict=True)]
        prefix = frame.prefix
        if not prefix and labels and labels[0] != IGNORED:
            prefix = frame.suffix[-1:]
        examples.append(Example(str(number), "original", (*prefix, *ids), (*[IGNORED] * len(prefix), *labels)))
    return examples


def log_probabilities(model: Any, tokenizer: Any, pairs: Sequence[Pair], batch_size: int) -> list[tuple[float, int]]:
    """Return (log-probability in nats, number of tokens) of each continuation after its prompt."""
    return example_log_probabilities(model, continuation_examples(tokenizer, pairs), batch_size)


def example_log_probabilities(
    model: Any, examples: Sequence[Example], batch_size: int, batch_tokens: int = TOKENS
) -> list[tuple[float, int]]:
    """Return (log-probability in nats, number of tokens) of each example's labels."""
    return _measure(model, examples, list(chains(examples)), Budget(batch_size, batch_tokens))


def group_log_probabilities(
    model: Any,
    tokenizer: Any,
    groups: Sequence[Group],
    batch_size: int,
    batch_tokens: int = TOKENS,
    *,
    templated: bool = False,
) -> list[list[tuple[float, int]]]:
    """Return (log-probability in nats, number of tokens) of each group's continuations after their prompt."""
    pairs = [(prompt, text) for prompt, texts in groups for text in texts]
    examples = continuation_examples(tokenizer, pairs, templated=templated)
    longest, text = max(
        ((len(one.input_ids), text) for one, (_, text) in zip(examples, pairs, strict=True)), default=(0, "")
    )
    check_positions(model, longest, f"the answer {shortened(text)} after its prompt")
    found = iter(_measure(model, examples, _trees(model, groups, examples), Budget(batch_size, batch_tokens)))
    return [[next(found) for _ in texts] for _, texts in groups]


def _trees(model: Any, groups: Sequence[Group], examples: Sequence[Example]) -> list[Tree]:
    width = widest_tree(model) if any(len(texts) > 1 for _, texts in groups) else 0
    if not width or max(len(example.input_ids) for example in examples) > width:
        return list(chains(examples))
    numbered = iter(enumerate(examples))
    return [tree for _, texts in groups for tree in grow([next(numbered) for _ in texts])]


@torch.inference_mode()
def _measure(model: Any, examples: Sequence[Example], trees: Sequence[Tree], budget: Budget) -> list[tuple[float, int]]:
    nats = [0.0] * len(examples)
    with answering(model):
        found = read_trees(model, trees, budget)
    for tree, values in zip(trees, found, strict=True):
        for number, value in zip(tree.members, values, strict=True):
            nats[number] = value
    tokens = [sum(label != IGNORED for label in example.labels[1:]) for example in examples]
    return list(zip(nats, tokens, strict=True))
