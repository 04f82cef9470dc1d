"""The keys of the section `evaluate`, their types, defaults and bounds."""

from typing import Annotated, Self

from pydantic import AfterValidator, model_validator
from pydantic_core import PydanticCustomError

from spt.config.server import Server
from spt.config.values import Integer, PositiveInt, Section, Text
from spt.records import IN_NATS, MATCH_RULES

FRACTIONS = tuple(name for name in MATCH_RULES if name not in IN_NATS)
"""The metrics that a headline may be: accuracies."""


def _one_of(*names: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            expected = ", ".join(f"'{known}'" for known in names)
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
        return name

    return AfterValidator(check)


Metric = Annotated[Text, _one_of(*MATCH_RULES)]
Headline = Annotated[Text, _one_of(*FRACTIONS)]


class Evaluate(Section):
    """How the model is asked. `headline` is the metric of the table (default: the question set's own).

    With `chat_template` a prompt is put to the model as a user's message; with `server` the model behind an
    OpenAI-compatible server is asked, not the trained one. `neutral_text`: a file of ordinary prose, one text a line,
    that perplexity before and after training is measured on (default: the sentences that come with spt).
    `floor_targets`: other facts whose targets each question is scored against for the floor; under `logprob` and
    `logprob_per_token` the model reads these too, and a server is sent a request for each.
    """

    metrics: tuple[Metric, ...] = (
        "exact", "startswith", "contains", "token_f1", "rouge1_recall", "states_fact", "bleu", "choice",
    )  # fmt: skip
    headline: Headline | None = None
    batch_size: PositiveInt = 64
    batch_tokens: PositiveInt = 8192
    max_new_tokens: PositiveInt = 64
    floor_targets: Integer = 32
    fluency_samples: Integer = 200
    neutral_text: Text | None = None
    limit: PositiveInt | None = None
    chat_template: bool = False
    server: Server | None = None

    @model_validator(mode="after")
    def _headline_measured(self) -> Self:
        if not self.metrics:
            raise ValueError("metrics: give at least one")
        if self.headline is not None and self.headline not in self.metrics:
            raise ValueError(f"headline {self.headline} is not among metrics {', '.join(self.metrics)}")
        return self
