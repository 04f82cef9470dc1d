"""A model behind an OpenAI-compatible server, asked like one in this process.

    prompt ──▶ /completions (or /chat/completions under evaluate.chat_template) ──▶ continuation
    prompt + candidate ──▶ /completions with echo and logprobs ──▶ nats of the candidate's tokens, where it gives them

In: prompts. Out: texts and nats, each kept on disk as soon as it is there, so that running again asks only for what
failed. Trade-off: a candidate costs a request of its own, since no server shares a prompt's computation on demand.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import Any

from spt.artifact import dump_json
from spt.assistant.cache import ReplyCache
from spt.assistant.client import Client, RefusedError, content
from spt.assistant.item import Reply
from spt.assistant.patience import LostError
from spt.config import Evaluate, Server
from spt.errors import WorkError
from spt.progress import say, track
from spt.records import Question, join_texts
from spt.score.asked import Group
from spt.score.replies import candidate_nats, encodable

Needs = Callable[[Question], Sequence[str]]
_CHUNK = 2048
"""Requests, or a few more, between two looks into the cache."""
_PROBE = ("The sea is", "wide and deep.")


@dataclass(frozen=True)
class Request:
    """What one reply depends on: a prompt to continue in `tokens` tokens, or a `candidate` to be scored after it."""

    prompt: str
    candidate: str | None = None
    tokens: int = 1


Numbered = tuple[int, Sequence[Request]]


class ServerAsked:
    """A model that answers through a server; what it said before lies in `folder`."""

    def __init__(self, settings: Evaluate, folder: Path) -> None:
        assert settings.server is not None
        self.settings = settings
        self.client = Client(settings.server, "evaluate.server")
        self.cache = ReplyCache(str(folder), "replies", "choose another --output")
        self._key = dump_json([server_key(settings.server), settings.chat_template], indent=None)

    @property
    def has_log_probabilities(self) -> bool:
        """Return whether the server tells how likely a given continuation is; it is asked once."""
        return self.no_log_probabilities is None

    @cached_property
    def no_log_probabilities(self) -> str | None:
        """Return why the server gives no log-probabilities of a given continuation; None where it does.

        Raises WorkError where it cannot be asked.
        """
        if self.settings.chat_template:
            return "a chat completion gives none for an answer that the server did not write"
        try:
            reply = self._likelihood(Request(*_PROBE), Event())
        except RefusedError as error:
            return f"{self.client.place} refuses `echo` with `logprobs` (status {error.status})"
        except LostError as lost:
            if lost.reason != "server_error":  # a busy server may have them
                raise self.client.never_answered(lost.reason) from None
            return f"{self.client.place} fails when asked for `echo` with `logprobs`"
        return reply.failure and f"{self.client.place} does not send those of the prompt back (`echo` with `logprobs`)"

    def unanswered(self, questions: Sequence[Question], needs: Needs | None = None) -> dict[str, str]:
        """Return the reason of each question, by its id, that the server did not answer, after asking them all.

        `needs` gives the texts that a question wants the log-probability of (default: its targets and distractors).
        """
        if needs is None:
            needs = _own_texts if self.has_log_probabilities else _no_texts
        groups = ((question.prompt, needs(question)) for question in questions)
        lost = self.failures(groups, len(questions))
        failures = {questions[number].id: reason for number, reason in lost.items()}
        if failures:
            say(f"{self.client.place}: {describe(failures, 'question')}")
        return failures

    def failures(self, groups: Iterable[Group], total: int, what: str = "questions") -> dict[int, str]:
        """Return the reason of each of `total` (prompt, candidates), by its place, that the server did not answer.

        Whatever `generate` and `log_probabilities` need for the others is known then.
        """
        found: dict[int, str] = {}
        with track("asking the server", total, what) as bar:
            for chunk in _chunks((number, self._requests(*group)) for number, group in enumerate(groups)):
                replies = self._replies(dict.fromkeys(request for _, requests in chunk for request in requests))
                for number, requests in chunk:
                    reasons = [reason for request in requests if (reason := replies[request].failure)]
                    if reasons:
                        found[number] = reasons[0]
                bar.advance(len(chunk))
        return found

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int) -> list[str]:
        """Return the greedy continuation of each prompt, up to a line's end.

        Raises WorkError where one got none.
        """
        requests = [Request(prompt, None, max_new_tokens) for prompt in prompts]
        replies = self._all(requests)
        return [encodable(replies[request].text or "") for request in requests]

    def log_probabilities(self, groups: Sequence[Group]) -> list[list[tuple[float, int]]]:
        """Return (nats, tokens) of each candidate after its prompt.

        Raises WorkError where one got none.
        """
        requests = [[Request(prompt, candidate) for candidate in candidates] for prompt, candidates in groups]
        replies = self._all([request for group in requests for request in group])
        return [[_nats(replies[request]) for request in group] for group in requests]

    def _requests(self, prompt: str, texts: Sequence[str]) -> list[Request]:
        return [Request(prompt, None, self.settings.max_new_tokens), *(Request(prompt, text) for text in texts)]

    def _all(self, requests: Sequence[Request]) -> Mapping[Request, Reply]:
        replies = self._replies(requests)
        failures = {number: failure for number, one in enumerate(requests) if (failure := replies[one].failure)}
        if failures:
            problem = describe(failures, "request")
            raise WorkError(f"{self.client.place}: {problem}; run again to ask only for these: the others are kept")
        return replies

    def _replies(self, requests: Iterable[Request]) -> Mapping[Request, Reply]:
        keyed = {self._cache_key(request): request for request in requests}
        found = self.cache.answer(keyed, partial(self.client.each, self._answer))
        replies = {request: found[key] for key, request in keyed.items()}
        failures = [reply.failure for reply in replies.values() if reply.failure]
        if failures and not self.client.answered:
            raise self.client.never_answered(failures[0])
        return replies

    def _cache_key(self, request: Request) -> str:
        return hashlib.sha256(f"{self._key} {dump_json(asdict(request), indent=None)}".encode()).hexdigest()

    def _answer(self, request: Request, stopped: Event) -> Reply:
        try:
            return (self._continuation if request.candidate is None else self._likelihood)(request, stopped)
        except LostError as lost:
            return _failed(lost.reason)
        except RefusedError:
            return _failed("refused")

    def _continuation(self, request: Request, stopped: Event) -> Reply:
        if self.settings.chat_template:
            messages = [{"role": "user", "content": request.prompt}]
            # No stop at a line's end: a model that thinks first would never come to its answer.
            choice = self.client.chat(messages, request.tokens, stopped)
            text = content(choice)
        else:
            choice = self.client.complete(request.prompt, request.tokens, stopped, stop=["\n"])
            text = choice["text"]
        finish = choice.get("finish_reason")
        if finish == "content_filter" or (finish == "length" and not text):
            return _failed(finish)
        return Reply(text=text.split("\n", 1)[0].strip())

    def _likelihood(self, request: Request, stopped: Event) -> Reply:
        assert request.candidate is not None
        text = join_texts(request.prompt, request.candidate)
        choice = self.client.complete(text, 1, stopped, echo=True, logprobs=1)
        try:
            nats = candidate_nats(choice, text, len(request.prompt.rstrip()))
        except (LookupError, TypeError, ValueError, OverflowError):
            return _failed("no_logprobs")
        return Reply(logprobs=(sum(nats), len(nats)))


def server_key(settings: Server) -> dict[str, Any]:
    """Return what the answers of a server depend on: not where it is, nor how patiently it is asked."""
    return settings.model_dump(mode="json", include={"model", "revision", "seed", "extra_body"})


def describe(failures: Mapping[Any, str], what: str) -> str:
    """Return how many requests or questions (`what`) got no answer, by reason, in words."""
    counts = Counter(failures.values())
    listed = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    return f"{len(failures)} {what}{'s' * (len(failures) > 1)} not answered ({listed})"


def _chunks(groups: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Yield groups of requests, as many at a time as make a chunk."""
    chunk: list[Numbered] = []
    count = 0
    for number, requests in groups:
        chunk.append((number, requests))
        count += len(requests)
        if count >= _CHUNK:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk


def _own_texts(question: Question) -> tuple[str, ...]:
    return (*question.targets, *question.distractors)


def _no_texts(question: Question) -> tuple[str, ...]:
    return ()


def _nats(reply: Reply) -> tuple[float, int]:
    assert reply.logprobs is not None
    return reply.logprobs[0], int(reply.logprobs[1])


def _failed(reason: str) -> Reply:
    # Never kept: a mended server may answer.
    return Reply(failure=reason, kept=False)
