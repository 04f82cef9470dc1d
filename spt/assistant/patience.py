"""Sending a request until it is answered, or it is plain that it will not be.

In: a function that sends. Out: what it returns; `LostError` when tries run out. Tried again: 408, 409, 429, 5xx,
timeouts, lost connections, replies that are no JSON. Trade-off: `Retry-After` is honoured up to `LONGEST` seconds,
since a server may ask for hours.
"""

import email.utils
import re
import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import TypeVar

import openai
import tenacity

T = TypeVar("T")

FIRST = 0.5
"""Seconds before the second try, where the server does not say; doubled each time, with jitter."""

LONGEST = 120.0
"""Seconds waited at most before a try."""


class MalformedError(Exception):
    """A reply that is not what the protocol says."""


class LostError(Exception):
    """Every try failed; `reason` says how the last one did."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


def patiently(send: Callable[[], T], retries: int, stopped: Event) -> T:
    """Return what `send` returns, trying up to `retries` times more; ends at once when `stopped` is set.

    Raises LostError, and whatever is not worth another try as it came.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: _reason(error) is not None),
        stop=tenacity.stop_any(tenacity.stop_after_attempt(retries + 1), tenacity.stop_when_event_set(stopped)),
        wait=_pause,
        sleep=tenacity.sleep_using_event(stopped),
        reraise=True,
    )
    try:
        return retrying(send)
    except Exception as error:
        reason = _reason(error)
        if reason is None:
            raise
        # The error's own text, never its request: that holds the key.
        raise LostError(reason, str(error).split("\n", 1)[0]) from None


def _reason(error: BaseException) -> str | None:
    """Return the name of a failure that may pass; None for another."""
    if isinstance(error, openai.APITimeoutError):
        return "timeout"
    if isinstance(error, openai.APIConnectionError):
        return "connection"
    if isinstance(error, MalformedError):
        return "malformed"
    if isinstance(error, openai.APIStatusError):
        code = error.status_code
        return "busy" if code in (408, 409, 429) else "server_error" if code >= 500 else None
    return None


def _pause(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = _retry_after(error.response.headers) if isinstance(error, openai.APIStatusError) else None
    if asked is None:
        asked = tenacity.wait_random_exponential(multiplier=FIRST, max=LONGEST)(state)
    return min(max(asked, 0.0), LONGEST)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, given as a number or as a date."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    if email.utils.parsedate(value) is None:
        return None
    return email.utils.parsedate_to_datetime(value).timestamp() - time.time()
