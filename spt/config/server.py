"""The keys of any OpenAI-compatible server: where it is, what it serves, how it is asked.

Trade-off: one set of keys for assistant and evaluation, so that whoever has set up one server has set up both.
"""

import re
from typing import Any, Self

from pydantic import Field, model_validator

from spt.config.values import Integer, Positive, PositiveInt, Section, Text


class Server(Section):
    """A model behind a server that speaks OpenAI's API at `base_url` (default: OpenAI's own).

    The key is read from the environment variable `api_key_env`; `timeout` is in seconds; `extra_body` is sent along,
    such as llama.cpp's repeat_penalty; `revision` is any label, to be changed when another model is served by the same
    name.
    """

    model: Text
    revision: Text | None = None
    base_url: Text | None = None
    api_key_env: Text = "OPENAI_API_KEY"
    concurrency: PositiveInt = 8
    timeout: Positive = 60.0
    max_retries: Integer = 5
    seed: Integer = 0
    extra_body: dict[str, Any] = Field(default={})

    @model_validator(mode="after")
    def _open_place(self) -> Self:
        if self.base_url is not None and not re.match(r"https?://[^@/]+(/[^@]*)?$", self.base_url):
            raise ValueError(
                "base_url must be such as http://localhost:8080/v1, without a name or password; a key belongs into the "
                "environment"
            )
        return self
