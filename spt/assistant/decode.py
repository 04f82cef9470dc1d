"""Three ways to read cuts off a model, all over one feed of token chunks behind a shared prefix.

    generate      token by token, whatever it says
    constrained   at each boundary: the separator, or the next word; a chunk is all that is not settled, as drafted
    score         the sentence at once; the separator's log-probability at each boundary

In: encoded items of one batch. Out: replies in their order. Rows are padded on the left of each chunk, and the mask
remembers the holes. Trade-off: a batch runs until its last row ends.
"""

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from spt.assistant.draft import Draft
from spt.assistant.item import Item, Reply
from spt.errors import ModelError

if TYPE_CHECKING:
    from spt.assistant.local import Encoded, LocalModel

_DIGITS = 3
"""Decimals of a log-probability (nats): what differs between batch sizes lies below them."""


class Feed:
    """Rows that a model reads chunk by chunk behind a common prefix."""

    def __init__(self, local: "LocalModel", rows: int) -> None:
        self._model = local.model
        self._cache = copy.deepcopy(_prefix_cache(local))
        self._cache.batch_repeat_interleave(rows)
        self._mask = torch.ones(rows, len(local.prefix), dtype=torch.long)
        self._seen = torch.full((rows, 1), len(local.prefix))

    def __call__(self, chunks: Sequence[Sequence[int]], keep: int = 1) -> Float[Tensor, "rows keep vocabulary"]:
        """Return the logits after each of the last `keep` tokens of every row's chunk; a chunk may be empty."""
        width = max(1, *map(len, chunks))
        ids = torch.tensor([[0] * (width - len(chunk)) + list(chunk) for chunk in chunks])
        fresh = torch.tensor([[0] * (width - len(chunk)) + [1] * len(chunk) for chunk in chunks])
        positions = (self._seen + fresh.cumsum(dim=1) - 1).clamp(min=0)
        self._mask = torch.cat([self._mask, fresh], dim=1)
        self._seen = self._seen + fresh.sum(dim=1, keepdim=True)
        device = self._model.device
        output = _forward(self._model, ids.to(device), self._cache, keep, self._mask.to(device), positions.to(device))
        logits: Tensor = output.logits[:, -keep:]
        return logits

    def keep(self, rows: Sequence[int], vain: Sequence[int]) -> None:
        """Go on with some of the rows, each without the last `vain` tokens that it has read."""
        if len(rows) < len(self._mask):
            self._cache.batch_select_indices(torch.tensor(rows, device=self._model.device))
        self._mask, self._seen = self._mask[rows], self._seen[rows]
        for row, count in enumerate(vain):
            # They stay in the cache, as holes.
            self._mask[row, self._mask.shape[1] - count :] = 0
            self._seen[row] -= count


def _forward(model: Any, ids: Any, cache: Any, keep: int, mask: Any = None, positions: Any = None) -> Any:
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    known = inspect.signature(base.forward).parameters
    # Renamed in transformers 5.2x.
    extra: dict[str, Any] = {"cache" if "cache" in known else "past_key_values": cache}
    if "logits_to_keep" in known:
        extra["logits_to_keep"] = keep
    return model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, **extra)


def _prefix_cache(local: "LocalModel") -> Any:
    from transformers import DynamicCache

    if local.prefix_cache is None:
        cache = DynamicCache(config=local.model.config)
        _forward(local.model, torch.tensor([local.prefix], device=local.model.device), cache, 1)
        local.prefix_cache = cache
    return local.prefix_cache


@torch.inference_mode()
def generate(local: "LocalModel", items: Sequence[Item], encoded: Sequence["Encoded"]) -> list[Reply]:
    """Return what the model writes, greedily: one line each, or the failure `length` where it does not end."""
    feed = Feed(local, len(items))
    ends = _end_ids(local)
    written: list[list[int]] = [[] for _ in items]
    replies: list[Reply | None] = [None] * len(items)
    chunks: list[Sequence[int]] = [row.head for row in encoded]
    while any(chunks):
        chosen = feed(chunks)[:, -1].argmax(dim=-1).tolist()
        for row, token in enumerate(chosen):
            if replies[row] is None:
                text = _ended(local, written[row], token, ends)
                over = len(written[row]) >= local.budget(encoded[row])
                replies[row] = Reply(text=text) if text is not None else Reply(failure="length") if over else None
        chunks = [[token] if replies[row] is None else [] for row, token in enumerate(chosen)]
    return [reply for reply in replies if reply is not None]


def _ended(local: "LocalModel", written: list[int], token: int, ends: set[int]) -> str | None:
    """Return a reply that this token ends: by an end token, or by a line break after something visible."""
    if token not in ends:
        written.append(token)
    text = str(local.tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)).lstrip()
    return text.split("\n")[0].rstrip() if token in ends or "\n" in text else None


def _end_ids(local: "LocalModel") -> set[int]:
    own = getattr(local.model.generation_config, "eos_token_id", None)
    ends = own if isinstance(own, list) else [own]
    return {end for end in (*ends, local.tokenizer.eos_token_id) if end is not None}


@torch.inference_mode()
def constrained(local: "LocalModel", items: Sequence[Item], encoded: Sequence["Encoded"]) -> list[Reply]:
    """Return the cuts that the model chooses: at each boundary it may write only the separator or the next word.

    Those of a greedy search token by token, in fewer passes: a draft is read as a whole (Jacobi decoding, Santilli et
    al., arXiv 2305.10427).
    """
    feed = Feed(local, len(items))
    drafts = [Draft(one, local.separator) for one in encoded]
    rows, vain = drafts, [0] * len(drafts)
    while left := [row for row, draft in enumerate(rows) if draft.unread]:
        feed.keep(left, [vain[row] for row in left])
        rows = [rows[row] for row in left]
        vain = _advance(feed, rows)
    return [
        Reply(cuts=tuple(item.boundaries[at] for at in sorted(draft.cuts)))
        for item, draft in zip(items, drafts, strict=True)
    ]


def _advance(feed: Feed, drafts: Sequence[Draft]) -> list[int]:
    """Read on in each draft and correct it; return how many tokens of each were read in vain."""
    # Up to the mean length: of a longer one, most of what lies beyond would be read in vain, the others padded to it.
    width = math.ceil(fmean(len(draft.unread) for draft in drafts))
    chunks = [draft.unread[:width] for draft in drafts]
    choices = [draft.choices(len(chunk)) for draft, chunk in zip(drafts, chunks, strict=True)]
    # The shortest is read to its end, which is a choice, so there is at least one.
    keep = max(len(chunk) - some[0].place for chunk, some in zip(chunks, choices, strict=True) if some)
    asked = [
        (row, keep - len(chunks[row]) + choice.place, choice.separator, choice.word)
        for row, some in enumerate(choices)
        for choice in some
    ]
    logits = feed(chunks, keep)
    rows, places, separators, words = torch.tensor(asked, device=logits.device).unbind(dim=1)
    likelier = iter((logits[rows, places, separators] > logits[rows, places, words]).tolist())
    return [
        draft.correct(len(chunk), [next(likelier) for _ in some])
        for draft, chunk, some in zip(drafts, chunks, choices, strict=True)
    ]


@torch.inference_mode()
def score(local: "LocalModel", items: Sequence[Item], encoded: Sequence["Encoded"]) -> list[Reply]:
    """Return the separator's log-probability (nats) at each boundary of a sentence that continues the list of examples.

    The words before a boundary stand without separators.

    Raises ModelError where the separator is not one token.
    """
    if len(local.separator) != 1:
        raise ModelError(
            f"{local.settings.model}: the separator {local.prompt.separator!r} is {len(local.separator)} tokens of its "
            "tokenizer, and mode score reads one; use mode constrained, or a prompt with another separator"
        )
    longest = max(one.reply for one in encoded)
    # One more, since a first piece may have no token at all.
    logits = Feed(local, len(items))([one.head + sum(one.pieces, ()) for one in encoded], keep=longest + 1)
    replies = []
    for row, one in zip(logits, encoded, strict=True):
        ends = torch.tensor([len(piece) for piece in one.pieces[:-1]], dtype=torch.long).cumsum(dim=0)
        logprobs = row[longest - one.reply + ends].float().log_softmax(dim=-1)[:, local.separator[0]]
        replies.append(Reply(logprobs=tuple(round(value, _DIGITS) for value in logprobs.tolist())))
    return replies


MODES: Mapping[str, Callable[["LocalModel", Sequence[Item], Sequence["Encoded"]], list[Reply]]] = {
    "generate": generate,
    "constrained": constrained,
    "score": score,
}
