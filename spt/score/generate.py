"""Prompts → continuations. Every row ends at its own end, and the next prompt takes its place.

A continuation ends at the end token, a newline, or the token limit. Decoding uses none of the sampling settings that
a checkpoint may bring, only its suppressed tokens. Trade-off: an architecture whose rows cannot join and leave goes
through transformers' `generate`, where a batch runs until its longest answer ends.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.generation.logits_process import NoBadWordsLogitsProcessor, SuppressTokensLogitsProcessor

from spt.encode import frame_of
from spt.model import answering, check_positions
from spt.model.head import base_of
from spt.progress import say, track
from spt.score.batches import Budget, in_halves
from spt.score.likelihood import TOKENS
from spt.score.refill import continue_rows
from spt.score.running import can_run, pad_left
from spt.score.weights import weights_laid_out

_lines: WeakKeyDictionary[Any, Tensor] = WeakKeyDictionary()
_runs: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


@dataclass
class Rules:
    """How the next token is chosen, and where a row ends."""

    config: GenerationConfig
    newline: Bool[Tensor, " vocabulary"]
    draws: Float[np.ndarray, "prompts tokens"] | None
    """A number in [0, 1) for every token of every prompt, so that a sample does not depend on its batch."""

    def __post_init__(self) -> None:
        """Make transformers' own processors of what must not be written."""
        config, device = self.config, self.newline.device
        self._processors: list[Any] = []
        if config.suppress_tokens:
            self._processors.append(SuppressTokensLogitsProcessor(config.suppress_tokens, device=device))
        if config.bad_words_ids:
            self._processors.append(NoBadWordsLogitsProcessor(config.bad_words_ids, config.eos_token_id))
        self._ends = frozenset(config.eos_token_id)
        self._newlines = frozenset(self.newline.nonzero()[:, 0].tolist())

    def choose(
        self, ids: Int[Tensor, "rows width"], logits: Float[Tensor, "rows words"], places: Sequence[tuple[int, int]]
    ) -> Int[Tensor, " rows"]:
        """Return the next token of each row; `places` are (prompt, how many tokens it has written)."""
        scores = logits.float()
        for processor in self._processors:
            scores = processor(ids, scores)
        if self.draws is None:
            return scores.argmax(dim=-1)
        reached = scores.double().softmax(dim=-1).cumsum(dim=-1)
        drawn = torch.tensor([[self.draws[place]] for place in places], device=ids.device)
        return torch.searchsorted(reached, drawn * reached[:, -1:], right=True)[:, 0].clamp(max=scores.shape[1] - 1)

    def ends(self, token: int, written: int) -> bool:
        """Return whether a row ends with its newest token, its `written`-th."""
        return written >= self.config.max_new_tokens or token in self._ends or token in self._newlines


def newlines(tokenizer: Any, device: Any) -> Bool[Tensor, " vocabulary"]:
    """Return which tokens hold a newline."""
    if tokenizer not in _lines:
        pieces = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
        _lines[tokenizer] = torch.tensor(["\n" in piece for piece in pieces])
    return _lines[tokenizer].to(device)


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
    batch_tokens: int = TOKENS,
    sample_seed: int | None = None,
    echo: bool = False,
    label: str | None = None,
) -> list[str]:
    """Return the continuation of each prompt (token ids), special tokens and white space around it removed.

    Greedy, or sampled at temperature 1 where `sample_seed` is given; the process's own generator is left as it was.
    With `echo` the prompt stands before its continuation; with `label` a bar of that name is shown.
    """
    config = decoding_config(model, tokenizer, max_new_tokens=max_new_tokens, sample=sample_seed is not None)
    shape = len(prompts), max_new_tokens
    draws = None if sample_seed is None else np.random.default_rng(sample_seed).random(shape)
    rules = Rules(config, newlines(tokenizer, model.device), draws)
    check_positions(model, max(map(len, prompts), default=0) + max_new_tokens, "prompt and evaluate.max_new_tokens")
    texts = [""] * len(prompts)
    bar_of = nullcontext() if label is None else track(label, len(prompts), "texts")
    with answering(model), bar_of as bar:

        def done(number: int, written: Sequence[int]) -> None:
            # What follows the end is padding, and no tokenizer has to call its padding special.
            answer = takewhile(lambda token: token not in config.eos_token_id, written)
            shown = [*(prompts[number] if echo else ()), *answer]
            texts[number] = tokenizer.decode(shown, skip_special_tokens=True).split("\n", 1)[0].strip()
            if bar is not None:
                bar.advance()

        budget = Budget(batch_size, batch_tokens)
        if runs(model):
            with weights_laid_out(model):
                continue_rows(model, prompts, rules, budget, done)
        else:
            _in_batches(model, prompts, rules, budget, done, sample_seed or 0)
    return texts


def runs(model: Any) -> bool:
    """Return whether rows of the model may end one by one; found out once a model."""
    base = base_of(model)
    if base not in _runs:
        _runs[base] = can_run(model)
        if not _runs[base]:
            say(f"the {base.config.model_type} model answers batch by batch: its rows cannot end one by one")
    return _runs[base]


class LineEnd(StoppingCriteria):  # type: ignore[misc]  # transformers is untyped here
    """Ends a row at its first token that holds a newline."""

    def __init__(self, newline: Bool[Tensor, " vocabulary"]) -> None:
        self.newline = newline

    def __call__(self, input_ids: Int[Tensor, "batch tokens"], scores: Any, **kwargs: Any) -> Bool[Tensor, " batch"]:
        """Return which rows have ended."""
        last = input_ids[:, -1]
        return self.newline[last.clamp(max=len(self.newline) - 1)] & (last < len(self.newline))


def _in_batches(
    model: Any,
    prompts: Sequence[Sequence[int]],
    rules: Rules,
    budget: Budget,
    done: Callable[[int, Sequence[int]], None],
    seed: int,
) -> None:
    """Continue prompts through transformers' `generate`."""
    config, stop = rules.config, StoppingCriteriaList([LineEnd(rules.newline)])
    devices = [model.device] if model.device.type == "cuda" else []

    def work(positions: list[int]) -> None:
        ids, mask = (part.to(model.device) for part in pad_left([prompts[p] for p in positions], config.pad_token_id))
        output = model.generate(input_ids=ids, attention_mask=mask, generation_config=config, stopping_criteria=stop)
        for position, row in zip(positions, output[:, ids.shape[1] :].tolist(), strict=True):
            done(position, row)

    with torch.random.fork_rng(devices), _decoding(model, config):
        torch.manual_seed(seed)
        lengths = [len(prompt) + config.max_new_tokens for prompt in prompts]
        for positions in budget.batches(lengths):
            in_halves(work, positions, lengths[positions[0]], budget)


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
