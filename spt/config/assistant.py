"""The `segment.assistant` section: which language model suggests where units start, and how it is asked.

Trade-off: one section for both backends, so that an experiment changes backend by one word; a key that only the other
backend knows is refused instead of being set in vain.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spt.config.server import Server
from spt.config.values import Number, PositiveInt, Text

_ONLY = {
    "transformers": ("batch_size", "dtype"),
    "openai": ("base_url", "api_key_env", "concurrency", "timeout", "max_retries", "seed", "extra_body"),
}


class Assistant(Server):
    """A language model that cuts sentences into units.

    `transformers`: `model` is a Hub id, a folder or a .gguf file, `batch_size` sentences at a time. `openai`: any
    server, with the keys of a Server.

    `prompt`: a bundled prompt's name or a file. `max_new_tokens` bounds a reply. Mode `score` cuts a sentence where the
    separator is likeliest, at the rate that gives `words_per_unit`, or instead wherever its log-probability is above
    `threshold` (nats). `cache`: a folder for replies, by default the user's own.
    """

    backend: Literal["transformers", "openai"] = "transformers"
    mode: Literal["generate", "constrained", "score"] = "constrained"
    prompt: Text = "units"
    max_new_tokens: PositiveInt = 256
    words_per_unit: Annotated[float, Number, Field(gt=1)] = 2.7
    threshold: Annotated[float, Number, Field(le=0)] | None = None
    batch_size: PositiveInt = 16
    dtype: Literal["float32", "bfloat16"] = "float32"
    cache: Text | None = None

    @model_validator(mode="after")
    def _fits_backend(self) -> Self:
        if self.backend == "openai" and self.mode == "score":
            raise ValueError(
                "mode score reads the log-probability of one token, which a server does not give; use mode "
                "constrained or generate, or backend: transformers"
            )
        other = "openai" if self.backend == "transformers" else "transformers"
        self._refuse(_ONLY[other], f"only for backend {other}")
        if self.mode != "score":
            self._refuse(("threshold", "words_per_unit"), "only for mode score")
        return self

    def _refuse(self, keys: tuple[str, ...], why: str) -> None:
        fields = type(self).model_fields
        given = [key for key in keys if getattr(self, key) != fields[key].get_default()]
        if given:
            raise ValueError(f"{', '.join(given)}: {why}; remove it")
