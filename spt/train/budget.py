"""A budget in tokens (`train.max_tokens`) → as many steps as are expected to see them.

In: a stream. Out: the stream with its passes and steps. How long an example is, is learned from the beginning of the
first epoch, drawn as training draws it; so the number of steps depends on data, settings and seed alone: it is the same
for any number of ranks, and for a run that goes on. Trade-off: what training sees differs from the budget by the chance
of that sample; log and manifest count the tokens that were seen.
"""

from dataclasses import replace
from math import ceil

from spt.errors import InputError
from spt.train.stream import Stream

EXAMPLES = 2_000
"""Examples encoded to learn how many tokens one has."""


def in_steps(stream: Stream) -> Stream:
    """Return the stream with `train.max_tokens`, where it is given, as `epochs` and `max_steps`.

    Raises InputError where no example fits `train.max_length`.
    """
    budget = stream.train.max_tokens
    if budget is None:
        return stream
    per_example = _tokens_per_example(stream)
    epochs, rest = divmod(budget, per_example * stream.examples_per_epoch)
    # The last step of an epoch holds what is left of it.
    last = min(round(rest / (per_example * stream.train.batch_size)), stream.steps_per_epoch)
    steps = max(int(epochs) * stream.steps_per_epoch + last, 1)
    passes = {"max_tokens": None, "max_steps": steps, "epochs": ceil(steps / stream.steps_per_epoch)}
    return replace(stream, train=stream.train.model_copy(update=passes))


def _tokens_per_example(stream: Stream) -> float:
    """Return the mean over the first epoch, or its first EXAMPLES; one rank's view holds all of a step."""
    whole = replace(stream, rank=0, world_size=1)
    seen = [whole.step(n) for n in range(min(stream.steps_per_epoch, ceil(EXAMPLES / stream.train.batch_size)))]
    tokens = sum(batch.tokens for step in seen for batch in step.batches)
    if not tokens:
        raise InputError("train.max_tokens: no example fits train.max_length; raise it, or train.too_long: truncate")
    return tokens / sum(len(step.ids) for step in seen)
