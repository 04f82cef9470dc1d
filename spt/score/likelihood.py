"""Prompt and continuation → log-probability in nats, teacher-forced.

The two are encoded as one text and split by characters: a token that spans the border belongs to the continuation,
which therefore is never empty. Trade-off: a prompt is computed again for each of its continuations.
"""

from collections.abc import Sequence
from math import exp
from typing import Any

import torch

from spt.batch import collate, length_sorted
from spt.encode import IGNORED, frame_of
from spt.errors import ModelError
from spt.loss import target_log_probabilities
from spt.model import check_positions
from spt.records import Example, join_texts

Pair = tuple[str, str]


def continuation_examples(tokenizer: Any, pairs: Sequence[Pair]) -> list[Example]:
    """Return each (prompt, continuation) as an example whose labels are the continuation's tokens.

    A continuation that begins at the first token follows the end token where the tokenizer adds no beginning: otherwise
    nothing would predict it.

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
        labels = [token if end > len(prompt) else IGNORED for token, (_, end) in zip(ids, spans, strict=True)]
        prefix = frame.prefix
        if not prefix and labels and labels[0] != IGNORED:
            prefix = frame.suffix[-1:]
        examples.append(Example(str(number), "original", (*prefix, *ids), (*[IGNORED] * len(prefix), *labels)))
    return examples


def log_probabilities(model: Any, tokenizer: Any, pairs: Sequence[Pair], batch_size: int) -> list[tuple[float, int]]:
    """Return (log-probability in nats, number of tokens) of each continuation after its prompt."""
    return example_log_probabilities(model, continuation_examples(tokenizer, pairs), batch_size)


@torch.inference_mode()
def example_log_probabilities(model: Any, examples: Sequence[Example], batch_size: int) -> list[tuple[float, int]]:
    """Return (log-probability in nats, number of tokens) of each example's labels."""
    results = [(0.0, 0)] * len(examples)
    was_training = model.training
    model.eval()
    for positions in length_sorted([len(example.input_ids) for example in examples], batch_size):
        check_positions(model, len(examples[positions[0]].input_ids), "a text to be scored")
        batch = collate([examples[position] for position in positions], pad_id=0)
        labels = batch.labels.to(model.device)
        logits = model(
            input_ids=batch.input_ids.to(model.device),
            attention_mask=batch.attention_mask.to(model.device),
            use_cache=False,
        ).logits
        tokens = (labels[:, 1:] != IGNORED).sum(dim=1).tolist()
        nats = target_log_probabilities(logits, labels).tolist()
        for position, value, count in zip(positions, nats, tokens, strict=True):
            results[position] = (value, count)
    model.train(was_training)
    return results


def perplexity(model: Any, tokenizer: Any, texts: Sequence[str], batch_size: int) -> tuple[float, int]:
    """Return (perplexity, predicted tokens) of texts: exp of all nats over all tokens, whatever the batches."""
    results = log_probabilities(model, tokenizer, [("", text) for text in texts], batch_size)
    tokens = sum(count for _, count in results)
    return exp(-sum(nats for nats, _ in results) / max(tokens, 1)), tokens
