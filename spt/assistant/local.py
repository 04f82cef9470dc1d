"""A language model in this process: loaded when the first item comes, on this process's own device.

    prefix (instruction, examples: computed once) ── sentence ── middle ── reply      generate, constrained
    prefix (examples as a list)                                         ── sentence   score

In: items. Out: replies, batch by batch. Items are sorted by length and cut into batches before anything is asked, so a
batch depends on the items alone. Trade-off: sentence and separator are encoded apart from their surroundings, which is
what makes a prefix shared and every word boundary a token boundary.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import spt.assistant
from spt.artifact import hash_code, versions
from spt.assistant.item import Item, Reply
from spt.assistant.prompt import Message, Prompt
from spt.config import Assistant, Model
from spt.errors import ModelError
from spt.model import fingerprint, load_base, load_tokenizer, load_trained

_PLACE = "SENTENCE-TO-CUT"
_TOKENS = 128
"""Tokens a row, by which batches of long rows get fewer rows."""


@dataclass(frozen=True)
class Encoded:
    """An item in token ids: `head` (sentence, middle), then the `pieces` of the reply."""

    head: tuple[int, ...]
    pieces: tuple[tuple[int, ...], ...]

    @property
    def reply(self) -> int:
        """Return the number of tokens of the reply without separators."""
        return sum(map(len, self.pieces))

    def __len__(self) -> int:
        return len(self.head) + self.reply


class LocalModel:
    """A causal language model through transformers. `requests` counts the items it has read."""

    def __init__(self, settings: Assistant, prompt: Prompt) -> None:
        self.settings = settings
        self.prompt = prompt
        self.requests = 0
        self.prefix_cache: Any = None

    def key(self) -> dict[str, Any]:
        """Return what a reply depends on besides the item."""
        settings = self.settings
        return {
            "backend": settings.backend,
            "model": fingerprint(settings.model, settings.revision),
            "mode": settings.mode,
            "dtype": settings.dtype,
            "max_new_tokens": settings.max_new_tokens if settings.mode == "generate" else None,
            "code": hash_code(spt.assistant),
            **versions("transformers", "torch"),
        }

    def ask(self, items: Sequence[Item]) -> Iterator[Mapping[int, Reply]]:
        """Yield, for each batch, the replies by the positions of their items."""
        from spt.assistant.decode import MODES

        encoded = [self.encode(item) for item in items]
        long = {row: Reply(failure="too_long") for row, one in enumerate(encoded) if self._needed(one) > self._room}
        fitting = [row for row in range(len(items)) if row not in long]
        if long:
            yield long
        for rows in batches([len(encoded[row]) for row in fitting], self.settings.batch_size):
            chosen = [fitting[row] for row in rows]
            self.requests += len(chosen)
            replies = MODES[self.settings.mode](self, [items[row] for row in chosen], [encoded[row] for row in chosen])
            yield dict(zip(chosen, replies, strict=True))

    def encode(self, item: Item) -> Encoded:
        """Return an item in token ids, each piece encoded alone."""
        # What looks like a special token in a corpus is text.
        rows = self.tokenizer(
            [item.text, *item.pieces], add_special_tokens=False, split_special_tokens=True, verbose=False
        )["input_ids"]
        shown = () if self.settings.mode == "score" else tuple(rows[0])
        return Encoded(shown + self.middle, tuple(map(tuple, rows[1:])))

    @property
    def _room(self) -> int:
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return (limit or 1 << 30) - len(self.prefix)

    def _needed(self, encoded: Encoded) -> int:
        mode = self.settings.mode
        separators = len(encoded.pieces) * len(self.separator) if mode == "constrained" else 0
        return len(encoded) + separators + (self.budget(encoded) if mode == "generate" else 0)

    def budget(self, encoded: Encoded) -> int:
        """Return how many tokens a free reply may have: twice a copy, so that a runaway ends soon."""
        return min(self.settings.max_new_tokens, 2 * encoded.reply + 16)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        settings = self.settings
        if settings.revision is None:
            return load_trained(settings.model, dtype=settings.dtype)
        base = Model(base=settings.model, revision=settings.revision, dtype=settings.dtype)
        return load_base(base).eval(), load_tokenizer(base)

    @cached_property
    def model(self) -> Any:
        """Return the model, on the device of this process's rank."""
        return self._loaded[0].to(_own_device())

    @property
    def tokenizer(self) -> Any:
        """Return the tokenizer."""
        return self._loaded[1]

    @cached_property
    def _rendered(self) -> tuple[str, str]:
        """Return what stands before the sentence, and what stands between it and its copy."""
        if self.settings.mode == "score":
            return self._render_list(), ""
        text = self._render()
        if text.count(_PLACE) != 1:
            raise ModelError(
                f"{self.settings.model}: its chat template shows the sentence {text.count(_PLACE)} times, not once; "
                "use another model"
            )
        before, _, after = text.partition(_PLACE)
        return before, after

    def _render(self) -> str:
        if not self.tokenizer.chat_template:
            return self.prompt.plain(_PLACE)
        return self._template(self.prompt.messages(_PLACE))

    def _render_list(self) -> str:
        if not self.tokenizer.chat_template:
            return f"{self.prompt.listing}\n\n{self.prompt.listed}"
        return self._template(self.prompt.list_messages()) + self.prompt.listed

    def _template(self, messages: list[Message]) -> str:
        try:
            return self._apply(messages)
        except Exception:  # some templates refuse a system message, each with an error of its own
            system, first, *rest = messages
            return self._apply([{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *rest])

    def _apply(self, messages: list[Message]) -> str:
        rendered = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return str(rendered)

    @cached_property
    def _context(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        before, after = (self._ids(text) for text in self._rendered)
        bare, full = self._ids("a"), self.tokenizer("a")["input_ids"]
        # A chat template writes the beginning token itself; a tokenizer that adds none gets none.
        begins = not self.tokenizer.chat_template and full[: len(bare)] != bare
        ids = (full[0], *before) if begins else tuple(before)
        # In a list something must be read before the first word: the last token of what is shared.
        return (ids[:-1], ids[-1:]) if self.settings.mode == "score" else (ids, tuple(after))

    @property
    def prefix(self) -> tuple[int, ...]:
        """Return the ids that all items share."""
        return self._context[0]

    @property
    def middle(self) -> tuple[int, ...]:
        """Return the ids of what stands right before the reply."""
        return self._context[1]

    @cached_property
    def separator(self) -> tuple[int, ...]:
        """Return the ids of the separator."""
        return tuple(self._ids(self.prompt.separator))

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids


def batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yield the positions of rows of like length, at most `size`; of long rows fewer, so that memory is bounded."""
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    batch: list[int] = []
    for row in order:
        if batch and (len(batch) == size or (len(batch) + 1) * lengths[row] > size * _TOKENS):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _own_device() -> Any:
    import torch

    # By the launcher's environment: a process group would wait for ranks that do not segment.
    kind = torch.accelerator.current_accelerator(check_available=True)
    if kind is None:
        return torch.device("cpu")
    return torch.device(kind.type, int(os.environ.get("LOCAL_RANK", "0")) % torch.accelerator.device_count())
