"""Items → cuts: what is known comes from the cache, the rest from the backend, and nothing is believed unread.

    items ──▶ unique ──▶ cache ──▶ backend ──▶ cache ──▶ cuts, or the reason why there are none

In: items of one shard. Out: an answer an item, in order. Trade-off: replies are kept as they came, so that reading them
better later asks nothing anew.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import spt.assistant
from spt.artifact import dump_json, hash_code
from spt.assistant.cache import ReplyCache
from spt.assistant.item import Item, Reply
from spt.assistant.local import LocalModel
from spt.assistant.prompt import Prompt, read_prompt
from spt.assistant.verify import verify
from spt.config import Assistant

Answer = tuple[int, ...] | str
"""Cuts out of an item's boundaries, or the reason of a failure."""


class Backend(Protocol):
    """Answers items."""

    @property
    def requests(self) -> int:
        """Return how many items were sent to the model so far, repetitions included."""
        ...

    def key(self) -> dict[str, Any]:
        """Return what a reply depends on besides the item and the prompt."""
        ...

    def ask(self, items: Sequence[Item]) -> Iterator[Mapping[int, Reply]]:
        """Yield replies by the positions of their items."""
        ...


class UnitAssistant:
    """A language model that says where sentences are cut."""

    def __init__(self, settings: Assistant) -> None:
        self.settings = settings
        self.prompt: Prompt = read_prompt(settings.prompt)
        self.backend = make_backend(settings, self.prompt)
        self.cache = ReplyCache(settings.cache)

    def key(self) -> dict[str, Any]:
        """Return what the cuts depend on: model, decoding, prompt, code."""
        prompt = hashlib.sha256(dump_json(self.prompt.model_dump()).encode()).hexdigest()
        scoring = ("threshold", "words_per_unit") if self.settings.mode == "score" else ()
        settings = {name: getattr(self.settings, name) for name in scoring}
        return {**self._backend_key, **settings, "prompt": prompt, "code": hash_code(spt.assistant)}

    def counts(self) -> dict[str, Any]:
        """Return what was asked so far in this process."""
        return {"requests": self.backend.requests, "cache_hits": self.cache.hits}

    def cut(self, items: Sequence[Item]) -> list[Answer]:
        """Return cuts or a reason for each item; one that leaves nothing open is not asked about.

        Raises as the backend and the cache do.
        """
        keys = [self._cache_key(item) if item.open else "" for item in items]
        asked = {key: item for key, item in zip(keys, items, strict=True) if key}
        replies = self.cache.answer(asked, self.backend.ask)
        return [
            self._read(item, replies[key]) if key else item.settle(()) for key, item in zip(keys, items, strict=True)
        ]

    def _read(self, item: Item, reply: Reply) -> Answer:
        if reply.failure is not None:
            return reply.failure
        if reply.cuts is not None:
            return item.settle(reply.cuts)
        if reply.logprobs is not None:
            return item.settle(self._likely(item, reply.logprobs))
        assert reply.text is not None
        cuts = verify(reply.text, item, self.prompt.mark, [plain for plain, _ in self.prompt.demonstrations])
        return cuts if isinstance(cuts, str) else item.settle(cuts)

    def _likely(self, item: Item, logprobs: Sequence[float]) -> list[int]:
        """Return the boundaries above the threshold, or as many of the likeliest as `words_per_unit` asks for.

        That rate holds in each sentence, since a small model's log-probabilities drift along a sentence and from one
        kind of text to another: a threshold found elsewhere gave units a third too long.
        """
        ranked = sorted((-logprob, offset) for offset, logprob in zip(item.boundaries, logprobs, strict=True))
        if self.settings.threshold is not None:
            return [offset for negative, offset in ranked if -negative > self.settings.threshold]
        units = round((len(item.boundaries) + 1) / self.settings.words_per_unit)
        wanted, eligible = max(0, units - 1 - len(item.forced)), set(item.open)
        return [offset for _, offset in ranked if offset in eligible][:wanted]

    def _cache_key(self, item: Item) -> str:
        prompt = self.prompt.model_dump(exclude={"listing", "request"} if self.settings.mode != "score" else set())
        asked = dump_json([self._backend_key, prompt, self.prompt.messages(item.text), item.boundaries], indent=None)
        return hashlib.sha256(asked.encode()).hexdigest()

    @cached_property
    def _backend_key(self) -> dict[str, Any]:
        return self.backend.key()


def make_backend(settings: Assistant, prompt: Any) -> Backend:
    """Return what answers: a model in this process, or a server.

    `prompt` is a Prompt; in mode generate anything with its `messages` and `plain`.
    """
    if settings.backend == "transformers":
        return LocalModel(settings, prompt)
    # The SDK takes a second to import.
    from spt.assistant.server import Server

    return Server(settings, prompt)
