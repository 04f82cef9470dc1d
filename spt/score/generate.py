"""Prompts → continuations, in length-sorted, left-padded batches.

A continuation ends at the end token, a newline, or the token limit. Decoding uses none of the sampling settings that
a checkpoint may bring, only its suppressed tokens. Trade-off: a batch runs until its longest answer ends.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from spt.batch import length_sorted
from spt.encode import frame_of
from spt.model import check_positions
from spt.progress import track


class LineEnd(StoppingCriteria):  # type: ignore[misc]  # transformers is untyped here
    """Ends a row at its first token that holds a newline."""

    def __init__(self, tokenizer: Any, device: Any) -> None:
        pieces = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
        self.newline = torch.tensor(["\n" in piece for piece in pieces], device=device)

    def __call__(self, input_ids: Int[Tensor, "batch tokens"], scores: Any, **kwargs: Any) -> Bool[Tensor, " batch"]:
        """Return which rows have ended."""
        last = input_ids[:, -1]
        return self.newline[last.clamp(max=len(self.newline) - 1)] & (last < len(self.newline))


def decoding_config(model: Any, tokenizer: Any, *, max_new_tokens: int, sample: bool) -> GenerationConfig:
    """Return greedy decoding, or sampling at temperature 1 from the whole vocabulary."""
    own = model.generation_config
    ends = own.eos_token_id if isinstance(own.eos_token_id, list) else [own.eos_token_id]
    ends = sorted({frame_of(tokenizer).suffix[-1], *(end for end in ends if end is not None)})
    pad = tokenizer.pad_token_id
    values: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "eos_token_id": ends,
        "pad_token_id": ends[0] if pad is None else pad,
        "suppress_tokens": own.suppress_tokens,
        "bad_words_ids": own.bad_words_ids,
        "do_sample": sample,
    }
    return GenerationConfig(**values, **({"temperature": 1.0, "top_k": 0, "top_p": 1.0} if sample else {}))


@torch.inference_mode()
def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    batch_size: int,
    sample_seed: int | None = None,
    echo: bool = False,
    label: str | None = None,
) -> list[str]:
    """Return the continuation of each prompt (token ids), special tokens and white space around it removed.

    Greedy, or sampled at temperature 1 where `sample_seed` is given; the process's own generator is left as it was.
    With `echo` the prompt stands before its continuation; with `label` a bar of that name is shown.
    """
    config = decoding_config(model, tokenizer, max_new_tokens=max_new_tokens, sample=sample_seed is not None)
    stop = StoppingCriteriaList([LineEnd(tokenizer, model.device)])
    texts = [""] * len(prompts)
    was_training = model.training
    model.eval()
    devices = [model.device] if model.device.type == "cuda" else []
    bar_of = nullcontext() if label is None else track(label, len(prompts), "texts")
    with torch.random.fork_rng(devices), _decoding(model, config), bar_of as bar:
        torch.manual_seed(sample_seed or 0)
        for positions in length_sorted([len(prompt) for prompt in prompts], batch_size):
            check_positions(model, len(prompts[positions[0]]) + max_new_tokens, "prompt and evaluate.max_new_tokens")
            ids, mask = pad_left([prompts[position] for position in positions], config.pad_token_id)
            output = model.generate(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                generation_config=config,
                stopping_criteria=stop,
            )
            for position, row in zip(positions, output[:, ids.shape[1] :].tolist(), strict=True):
                # What follows the end is padding, and no tokenizer has to call its padding special.
                answer = takewhile(lambda token: token not in config.eos_token_id, row)
                shown = [*(prompts[position] if echo else ()), *answer]
                texts[position] = tokenizer.decode(shown, skip_special_tokens=True).split("\n", 1)[0].strip()
            if bar is not None:
                bar.advance(len(positions))
    model.train(was_training)
    return texts


@contextmanager
def _decoding(model: Any, config: GenerationConfig) -> Iterator[None]:
    """Put a generation config in the place of the model's own: `generate` would fill the gaps of one that is passed."""
    # peft keeps one beside the base's, and copies its own over it.
    holders = [model, model.get_base_model()] if hasattr(model, "get_base_model") else [model]
    own = [holder.generation_config for holder in holders]
    try:
        for holder in holders:
            holder.generation_config = config
        yield
    finally:
        for holder, kept in zip(holders, own, strict=True):
            holder.generation_config = kept


def prompt_ids(tokenizer: Any, prompts: Sequence[str]) -> list[list[int]]:
    """Return the ids of prompts, with the beginning token where the tokenizer itself adds one."""
    if not prompts:
        return []
    prefix = list(frame_of(tokenizer).prefix)
    encoded = tokenizer(list(prompts), add_special_tokens=False, verbose=False)["input_ids"]
    return [prefix + ids for ids in encoded]


def pad_left(
    rows: Sequence[Sequence[int]], pad_id: int
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """Return (ids, attention mask), padded on the left."""
    width = max(len(row) for row in rows)
    ids = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)
