"""Three ways to read cuts off a model, all over one feed of token chunks behind a shared prefix.

    generate      token by token, whatever it says
    constrained   at each boundary: the separator, or the next word; a chunk is all that is settled until then
    score         the sentence at once; the separator's log-probability at each boundary

In: encoded items of one batch. Out: replies in their order. Rows are padded on the left of each chunk, and the mask
remembers the holes. Trade-off: a batch runs until its last row ends.
"""

import copy
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

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
    """Return the cuts that the model chooses: at each boundary it may write only the separator or the next word."""
    feed = Feed(local, len(items))
    found: list[list[int]] = [[] for _ in items]
    rows = [_choices(one, local.separator) for one in encoded]
    asked: list[_Choice | None] = [next(row, None) for row in rows]
    while any(asked):
        last = feed([choice.tokens if choice else () for choice in asked])[:, -1]
        offered = torch.tensor([choice[2:] if choice else (0, 0) for choice in asked], device=last.device)
        for number, (separator, word) in enumerate(last.gather(1, offered).tolist()):
            choice = asked[number]
            if choice is not None:
                if separator > word:
                    found[number].append(items[number].boundaries[choice.boundary])
                asked[number] = _send(rows[number], separator > word)
    return [Reply(cuts=tuple(cuts)) for cuts in found]


class _Choice(NamedTuple):
    """Tokens to read; then, at a boundary, the token of the separator against that of the word."""

    tokens: tuple[int, ...]
    boundary: int
    separator: int
    word: int


def _choices(encoded: "Encoded", separator: tuple[int, ...]) -> Generator[_Choice, bool, None]:
    """Yield a row's choices and take what was chosen; what both ways begin with is read before choosing."""
    settled = encoded.head + encoded.pieces[0]
    for boundary, word in enumerate(encoded.pieces[1:]):
        shared = _shared(separator, word)
        if shared == min(len(separator), len(word)):
            # The word itself begins as the separator does: there is nothing to choose, so it is not cut off.
            settled += word
            continue
        cut = yield _Choice(settled + word[:shared], boundary, separator[shared], word[shared])
        settled = (separator + word if cut else word)[shared:]


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _send(row: Generator[_Choice, bool, None], cut: bool) -> _Choice | None:
    try:
        return row.send(cut)
    except StopIteration:
        return None


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
