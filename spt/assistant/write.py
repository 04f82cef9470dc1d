"""Requests → one written line each: the assistant as a writer, with the same backends and cache as for units.

In: one-line requests, and a prompt of examples. Out: a Reply each, its text one line or its failure a reason.
Trade-off: nothing is believed here; who asks knows what a good line is.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from spt.artifact import dump_json
from spt.assistant.ask import make_backend
from spt.assistant.cache import ReplyCache
from spt.assistant.item import Item, Reply
from spt.assistant.prompt import Bundled, Message, read_prompt
from spt.config import Assistant
from spt.config.values import Section


class Example(Section):
    """A request and the line that answers it."""

    request: str
    reply: str


class WritingPrompt(Bundled):
    """What a writer is told: an instruction, and examples."""

    folder: ClassVar[str] = "prompts/writing"

    instruction: str
    examples: tuple[Example, ...]

    def messages(self, request: str) -> list[Message]:
        """Return the chat: the instruction, the examples as turns, the request."""
        turns = [{"role": "system", "content": self.instruction}]
        for example in self.examples:
            turns += [{"role": "user", "content": example.request}, {"role": "assistant", "content": example.reply}]
        return [*turns, {"role": "user", "content": request}]

    def plain(self, request: str) -> str:
        """Return the same as one text, for a model without a chat template; the reply is one line."""
        shown = "".join(f"{example.request}\nReply: {example.reply}\n\n" for example in self.examples)
        return f"{self.instruction}\n\n{shown}{request}\nReply: "


class Writer:
    """A language model that writes a line for each request."""

    def __init__(self, settings: Assistant, prompt: str) -> None:
        scoring = {"threshold", "words_per_unit"}  # of a section that cuts too
        given = settings.model_dump(exclude_unset=True, exclude=scoring)
        self.settings = Assistant(**{**given, "mode": "generate", "prompt": prompt})
        self.prompt = read_prompt(prompt, WritingPrompt)
        self.backend = make_backend(self.settings, self.prompt)
        self.cache = ReplyCache(settings.cache)

    def write(self, requests: Sequence[str]) -> list[Reply]:
        """Return a reply for each request, its text the first line without white space and quotes around it.

        Raises as the backend and the cache do.
        """
        keys = [self._key(request) for request in requests]
        asked = {key: Item(request, ()) for key, request in zip(keys, requests, strict=True)}
        replies = self.cache.answer(asked, self.backend.ask)
        return [_one_line(replies[key]) for key in keys]

    def _key(self, request: str) -> str:
        asked = dump_json([self._backend_key, self.prompt.model_dump(), request], indent=None)
        return hashlib.sha256(asked.encode()).hexdigest()

    @cached_property
    def _backend_key(self) -> dict[str, Any]:
        return self.backend.key()


def _one_line(reply: Reply) -> Reply:
    if reply.text is None:
        return reply
    line = reply.text.strip().split("\n", 1)[0].strip().strip('"“”')
    return Reply(text=line) if line else Reply(failure="empty")
