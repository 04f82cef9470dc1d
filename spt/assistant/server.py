"""The backend `openai`: items to a server's chat completions, replies as they come.

In: items. Out: replies, each as soon as it is there. Trade-off: a reply that was cut off is asked for again with twice
the tokens, which costs its first part anew, since most replies are short.
"""

from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from spt.assistant.client import Client, RefusedError, said
from spt.assistant.grammar import PROBE, copy_grammar, literal_grammar
from spt.assistant.item import Item, Reply
from spt.assistant.patience import LostError
from spt.assistant.prompt import Prompt
from spt.config import Assistant
from spt.errors import InputError, WorkError

_DOUBLINGS = 2
"""How often a reply that was cut off is asked for again, each time with twice the tokens."""


class Server:
    """A model behind OpenAI's chat completions."""

    def __init__(self, settings: Assistant, prompt: Prompt) -> None:
        self.settings = settings
        self.prompt = prompt
        self.client = Client(settings, "segment.assistant")
        self._probed = False

    @property
    def requests(self) -> int:
        """Return how many requests were sent, repetitions included."""
        return self.client.requests

    def key(self) -> dict[str, Any]:
        """Return what a reply depends on besides the item."""
        # Not where it is served: a server that moved to another port serves the same model.
        kept = ("backend", "model", "revision", "mode", "max_new_tokens", "seed", "extra_body")
        return {name: getattr(self.settings, name) for name in kept}

    def ask(self, items: Sequence[Item]) -> Iterator[Mapping[int, Reply]]:
        """Yield replies by the positions of their items, each as soon as it is there.

        Raises InputError for what would fail for every item, WorkError where the server never answers.
        """
        if self.settings.mode == "constrained" and items:
            self._probe_grammar()
        lost: dict[int, Reply] = {}
        for replies in self.client.each(self._answer, items):
            lost |= {position: reply for position, reply in replies.items() if not reply.kept}
            yield {position: reply for position, reply in replies.items() if reply.kept}
        if lost and not self.client.answered:
            raise self.client.never_answered(next(iter(lost.values())).failure)
        yield lost

    def _answer(self, item: Item, stopped: Event) -> Reply:
        grammar = {"grammar": copy_grammar(item, self.prompt.separator)} if self.settings.mode == "constrained" else {}
        tokens = self.settings.max_new_tokens
        for _ in range(_DOUBLINGS + 1):
            try:
                choice = self.client.chat(self.prompt.messages(item.text), tokens, stopped, **grammar)
            except LostError as lost:
                return Reply(failure=lost.reason, kept=False)
            except RefusedError:
                # A mended server may think otherwise, so this is not kept.
                return Reply(failure="refused", kept=False)
            if choice.get("finish_reason") != "length":
                return Reply(text=said(choice))
            tokens *= 2
        return Reply(failure="length")

    def _probe_grammar(self) -> None:
        """Raise InputError where the server does not write what a grammar says; ask it once."""
        if self._probed:
            return
        place, remedy = self.client.place, "use mode generate, or a server that takes llama.cpp's field `grammar`"
        try:
            choice = self.client.chat(self.prompt.messages(PROBE), 64, Event(), grammar=literal_grammar(PROBE))
        except LostError as lost:
            raise WorkError(
                f"{place}: {lost}; see that the server runs and is reachable, then run again; where it takes no "
                f"grammar, {remedy}"
            ) from None
        except RefusedError as error:
            raise InputError(
                f"{place}: refuses a grammar (status {error.status}), which mode constrained needs; {remedy}"
            ) from None
        if said(choice).strip() != PROBE:
            raise InputError(f"{place}: ignores a grammar, which mode constrained needs; {remedy}")
        self._probed = True
