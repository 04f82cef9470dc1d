"""A client of an OpenAI-compatible server: one request, patiently, and many side by side.

In: messages (chat) or a text (completions). Out: the first choice of the reply, as plain JSON. What a busy or lost
server does is tried again (`patience`); a request that is refused is that item's failure; what would fail for every
item (no key, no such model) stops the run. Trade-off: greedy decoding is asked for (temperature 0, a seed), but no
server promises it.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import cached_property
from threading import Event
from typing import Any, TypeVar

import openai

from spt.assistant.patience import MalformedError, patiently
from spt.assistant.prompt import Message
from spt.config import Server
from spt.errors import MissingError, ModelError, WorkError

Item = TypeVar("Item")
Result = TypeVar("Result")
Choice = dict[str, Any]

_OWN_PLACE = "https://api.openai.com/v1"
_REFUSED = (400, 413, 422)
"""Answers that concern one item: a bad or too long request."""

_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


class RefusedError(Exception):
    """The server does not take this one request; `status` is its HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Client:
    """A model behind a server. `requests` counts what was sent, repetitions included; `answered`: it ever replied.

    `section` names the part of the experiment file that holds the settings, for messages.
    """

    def __init__(self, settings: Server, section: str) -> None:
        self.settings = settings
        self.section = section
        self.place = settings.base_url or _OWN_PLACE
        self.requests = 0
        self.answered = False
        self._lock = threading.Lock()

    def chat(self, messages: list[Message], tokens: int, stopped: Event, **extra: Any) -> Choice:
        """Return the first choice of a chat completion of at most `tokens` tokens; `extra` are further fields.

        Raises LostError, RefusedError; what is wrong with every request as our own errors.
        """
        limit = "max_completion_tokens" if self.settings.base_url is None else "max_tokens"
        extra = {limit: tokens, **extra}
        return self._patiently(lambda: self._sdk.chat.completions, {"messages": messages}, extra, stopped)

    def complete(self, prompt: str, tokens: int, stopped: Event, **extra: Any) -> Choice:
        """Return the first choice of a completion of plain text; as `chat` otherwise."""
        return self._patiently(
            lambda: self._sdk.completions, {"prompt": prompt}, {"max_tokens": tokens, **extra}, stopped
        )

    def each(self, answer: Callable[[Item, Event], Result], items: Sequence[Item]) -> Iterator[Mapping[int, Result]]:
        """Yield what `answer` makes of items, by their positions, as soon as it is there; `concurrency` at a time.

        The event is set when nobody waits any longer.
        """
        stopped = Event()
        with ThreadPoolExecutor(self.settings.concurrency) as pool:
            waiting = {pool.submit(answer, item, stopped): position for position, item in enumerate(items)}
            try:
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    yield {waiting.pop(future): future.result() for future in done}
            finally:
                # One request failed for all of them, or nobody listens any more: what has not begun is not sent.
                stopped.set()
                for future in waiting:
                    future.cancel()

    def never_answered(self, reason: str | None) -> WorkError:
        """Return the error for a server that has not replied once."""
        return WorkError(
            f"{self.place}: no request was answered ({reason}); see that the server runs and is reachable, then run "
            "again: what was answered before is kept"
        )

    def _patiently(
        self, endpoint: Callable[[], Any], asked: Mapping[str, Any], extra: Mapping[str, Any], stopped: Event
    ) -> Choice:
        body = {**self.settings.extra_body, **extra}
        try:
            choice = patiently(lambda: self._send(endpoint(), asked, body), self.settings.max_retries, stopped)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise MissingError(
                f"{self.place}: refuses the API key (status {error.status_code}); set the environment variable "
                f"{self.settings.api_key_env}"
            ) from None
        except openai.NotFoundError:
            kind = "chat completions" if "messages" in asked else "completions of plain text"
            raise ModelError(
                f"{self.place}: knows no {kind}, or no model {self.settings.model!r}; see its /models, and "
                f"give {self.section}.base_url with its version, such as http://localhost:8080/v1"
            ) from None
        except openai.APIStatusError as error:
            if error.status_code in _REFUSED:
                self.answered = True
                raise RefusedError(error.status_code) from None
            raise WorkError(
                f"{self.place}: answers with status {error.status_code}; see the server's own log"
            ) from None
        self.answered = True
        return choice

    def _send(self, endpoint: Any, asked: Mapping[str, Any], body: Mapping[str, Any]) -> Choice:
        with self._lock:
            self.requests += 1
        settings = self.settings
        fields = {"temperature": 0, "seed": settings.seed}
        fields |= {name: value for name, value in body.items() if name in fields}
        rest = {name: value for name, value in body.items() if name not in fields}
        response = endpoint.with_raw_response.create(model=settings.model, **asked, **fields, extra_body=rest)
        try:
            choice = json.loads(response.text)["choices"][0]
        except (ValueError, LookupError, TypeError) as error:
            raise MalformedError(f"no completion ({type(error).__name__})") from None
        said, kind = ("message", dict) if "messages" in asked else ("text", str)
        if not isinstance(choice, dict) or not isinstance(choice.get(said), kind):
            raise MalformedError(f"a choice without a {said}")
        return choice

    @cached_property
    def _sdk(self) -> Any:
        key = os.environ.get(self.settings.api_key_env)
        if not key and self.settings.base_url is None:
            raise MissingError(f"{self.place} needs a key; set the environment variable {self.settings.api_key_env}")
        # A server of one's own often wants no key, and the SDK always wants one.
        return openai.OpenAI(api_key=key or "none", base_url=self.place, timeout=self.settings.timeout, max_retries=0)


def said(choice: Mapping[str, Any]) -> str:
    """Return what a choice of a chat says; where it has no content, the last line of its reasoning."""
    message = choice["message"]
    text = content(choice)
    if text:
        return text
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    return (str(thought).strip().splitlines() or [""])[-1]


def content(choice: Mapping[str, Any]) -> str:
    """Return the content of a chat's choice without a thought before it; empty where there is none."""
    found = choice["message"].get("content")
    if isinstance(found, list):
        found = "".join(str(part.get("text") or "") for part in found if isinstance(part, dict))
    return _THOUGHT.sub("", str(found or "")).strip()
