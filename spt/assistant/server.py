"""An OpenAI-compatible server: many requests at a time, patient with a busy server, strict with a wrong one.

In: items. Out: replies, each as soon as it is there. What a busy or lost server does is tried again (`patience`); 400
is that item's failure; what would fail for every item (no key, no such model, no grammar) stops the run. Trade-off:
greedy decoding is asked for (temperature 0, a seed), but no server promises it.
"""

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import cached_property
from typing import Any

import openai

from spt.assistant.grammar import PROBE, copy_grammar, literal_grammar
from spt.assistant.item import Item, Reply
from spt.assistant.patience import LostError, MalformedError, patiently
from spt.assistant.prompt import Message, Prompt
from spt.config import Assistant
from spt.errors import InputError, MissingError, ModelError, WorkError

_OWN_PLACE = "https://api.openai.com/v1"

_DOUBLINGS = 2
"""How often a reply that was cut off is asked for again, each time with twice the tokens."""

_REFUSED = (400, 413, 422)
"""Answers that concern one item: a bad or too long request."""

_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


class Server:
    """A model behind OpenAI's chat completions. `requests` counts what was sent, repetitions included."""

    def __init__(self, settings: Assistant, prompt: Prompt) -> None:
        self.settings = settings
        self.prompt = prompt
        self.place = settings.base_url or _OWN_PLACE
        self.requests = 0
        self._lock = threading.Lock()
        self._answered = self._probed = False

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
        stopped = threading.Event()
        with ThreadPoolExecutor(self.settings.concurrency) as pool:
            waiting = {pool.submit(self._answer, item, stopped): position for position, item in enumerate(items)}
            try:
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    replies = {waiting.pop(future): future.result() for future in done}
                    lost |= {position: reply for position, reply in replies.items() if not reply.kept}
                    yield {position: reply for position, reply in replies.items() if reply.kept}
            finally:
                # One request failed for all of them, or nobody listens any more: what has not begun is not sent.
                stopped.set()
                for future in waiting:
                    future.cancel()
        if lost and not self._answered:
            raise WorkError(
                f"{self.place}: no request was answered ({next(iter(lost.values())).failure}); see that the server "
                "runs and is reachable, then run again: what was answered before is kept"
            )
        yield lost

    def _answer(self, item: Item, stopped: threading.Event) -> Reply:
        grammar = copy_grammar(item, self.prompt.separator) if self.settings.mode == "constrained" else None
        tokens = self.settings.max_new_tokens
        for _ in range(_DOUBLINGS + 1):
            try:
                choice = self._complete(self.prompt.messages(item.text), tokens, stopped, grammar)
            except LostError as lost:
                return Reply(failure=lost.reason, kept=False)
            except openai.APIStatusError:
                # A mended server may think otherwise, so this is not kept.
                self._answered = True
                return Reply(failure="refused", kept=False)
            if choice.get("finish_reason") != "length":
                return Reply(text=_text(choice))
            tokens *= 2
        return Reply(failure="length")

    def _probe_grammar(self) -> None:
        """Raise InputError where the server does not write what a grammar says; ask it once."""
        if self._probed:
            return
        remedy = "use mode generate, or a server that takes llama.cpp's field `grammar`"
        messages = self.prompt.messages(PROBE)
        try:
            choice = self._complete(messages, 64, threading.Event(), literal_grammar(PROBE))
        except LostError as lost:
            raise WorkError(
                f"{self.place}: {lost}; see that the server runs and is reachable, then run again; where it takes no "
                f"grammar, {remedy}"
            ) from None
        except openai.APIStatusError as error:
            raise InputError(
                f"{self.place}: refuses a grammar (status {error.status_code}), which mode constrained needs; {remedy}"
            ) from None
        if _text(choice).strip() != PROBE:
            raise InputError(f"{self.place}: ignores a grammar, which mode constrained needs; {remedy}")
        self._probed = True

    def _complete(
        self, messages: list[Message], tokens: int, stopped: threading.Event, grammar: str | None
    ) -> dict[str, Any]:
        """Return the first choice of a chat completion.

        Raises LostError; openai's error for a request that is refused; what is wrong with every request as our own.
        """
        limit = "max_completion_tokens" if self.settings.base_url is None else "max_tokens"
        extra = {**self.settings.extra_body, limit: tokens, **({} if grammar is None else {"grammar": grammar})}
        try:
            choice = patiently(lambda: self._send(messages, extra), self.settings.max_retries, stopped)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise MissingError(
                f"{self.place}: refuses the API key (status {error.status_code}); set the environment variable "
                f"{self.settings.api_key_env}"
            ) from None
        except openai.NotFoundError:
            raise ModelError(
                f"{self.place}: knows no chat completions, or no model {self.settings.model!r}; see its /models, and "
                "give segment.assistant.base_url with its version, such as http://localhost:8080/v1"
            ) from None
        except openai.APIStatusError as error:
            if error.status_code in _REFUSED:
                raise
            raise WorkError(
                f"{self.place}: answers with status {error.status_code}; see the server's own log"
            ) from None
        self._answered = True
        return choice

    def _send(self, messages: list[Message], extra: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.requests += 1
        response = self._client.chat.completions.with_raw_response.create(
            model=self.settings.model, messages=messages, temperature=0, seed=self.settings.seed, extra_body=extra
        )
        try:
            choice = json.loads(response.text)["choices"][0]
        except (ValueError, LookupError, TypeError) as error:
            raise MalformedError(f"no chat completion ({type(error).__name__})") from None
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise MalformedError("a choice without a message")
        return choice

    @cached_property
    def _client(self) -> Any:
        key = os.environ.get(self.settings.api_key_env)
        if not key and self.settings.base_url is None:
            raise MissingError(f"{self.place} needs a key; set the environment variable {self.settings.api_key_env}")
        # A server of one's own often wants no key, and the SDK always wants one.
        return openai.OpenAI(api_key=key or "none", base_url=self.place, timeout=self.settings.timeout, max_retries=0)


def _text(choice: Mapping[str, Any]) -> str:
    """Return what a choice says; where it has no content, the last line of its reasoning."""
    message = choice["message"]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content:
        return _THOUGHT.sub("", str(content)).strip()
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    return (str(thought).strip().splitlines() or [""])[-1]
