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
from spt.assistant.calibrate import find_threshold
from spt.assistant.item import Item, Reply
from spt.assistant.local import LocalModel
from spt.assistant.prompt import read_prompt
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
    """A language model that says where sentences are cut. `cache_hits` counts replies that were not asked for anew."""

    def __init__(self, settings: Assistant) -> None:
        self.settings = settings
        self.prompt = read_prompt(settings.prompt)
        self.backend = _make_backend(settings, self.prompt)
        self.cache = ReplyCache(settings.cache)
        self.cache_hits = 0

    def key(self) -> dict[str, Any]:
        """Return what the cuts depend on: model, decoding, prompt, code."""
        prompt = hashlib.sha256(dump_json(self.prompt.model_dump()).encode()).hexdigest()
        scoring = ("threshold", "words_per_unit") if self.settings.mode == "score" else ()
        settings = {name: getattr(self.settings, name) for name in scoring}
        return {**self._backend_key, **settings, "prompt": prompt, "code": hash_code(spt.assistant)}

    def counts(self) -> dict[str, Any]:
        """Return what was asked so far in this process."""
        return {"requests": self.backend.requests, "cache_hits": self.cache_hits}

    def cut(self, items: Sequence[Item]) -> list[Answer]:
        """Return cuts or a reason for each item.

        Raises as the backend and the cache do.
        """
        replies = self._replies(items)
        return [self._read(item, replies[item]) for item in items]

    @cached_property
    def threshold(self) -> float:
        """Return the log-probability (nats) above which mode score cuts: the one given, else the calibrated one."""
        if self.settings.threshold is not None:
            return self.settings.threshold
        replies = self._replies(self.prompt.calibration_items)
        scored = [(item.words, reply.logprobs) for item, reply in replies.items() if reply.logprobs is not None]
        return find_threshold(scored, self.settings.words_per_unit)

    def _replies(self, items: Sequence[Item]) -> dict[Item, Reply]:
        keys = {self._cache_key(item): item for item in items}
        kept = self.cache.get(list(keys))
        self.cache_hits += len(kept)
        missing = [key for key in keys if key not in kept]
        for found in self.backend.ask([keys[key] for key in missing]):
            fresh = {missing[position]: reply for position, reply in found.items()}
            self.cache.put(fresh)
            kept |= fresh
        return {keys[key]: reply for key, reply in kept.items()}

    def _read(self, item: Item, reply: Reply) -> Answer:
        if reply.failure is not None:
            return reply.failure
        if reply.cuts is not None:
            return reply.cuts
        if reply.logprobs is not None:
            pairs = zip(item.boundaries, reply.logprobs, strict=True)
            return tuple(boundary for boundary, logprob in pairs if logprob > self.threshold)
        assert reply.text is not None
        return verify(reply.text, item, self.prompt.mark, [plain for plain, _ in self.prompt.demonstrations])

    def _cache_key(self, item: Item) -> str:
        shown = [self.prompt.separator, self.prompt.messages(item.text), self.prompt.plain(item.text)]
        asked = dump_json([self._backend_key, shown, item.boundaries], indent=None)
        return hashlib.sha256(asked.encode()).hexdigest()

    @cached_property
    def _backend_key(self) -> dict[str, Any]:
        return self.backend.key()


def _make_backend(settings: Assistant, prompt: Any) -> Backend:
    if settings.backend == "transformers":
        return LocalModel(settings, prompt)
    # The SDK takes a second to import.
    from spt.assistant.server import Server

    return Server(settings, prompt)
