"""What a model must be for this pipeline: causal, and long enough.

Trade-off: causality is probed with two tiny forward passes, since a config does not tell it for every architecture.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spt.errors import ModelError


@contextmanager
def answering(model: Any) -> Iterator[None]:
    """Hold a model in evaluation mode, so without dropout; afterwards it is in the mode that it was in."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def check_causal(model: Any) -> None:
    """Raise ModelError where a token changes what is predicted before it (a BERT that was not made a decoder)."""
    import torch

    device = next(model.parameters()).device
    ids = torch.ones((2, 4), dtype=torch.long, device=device)
    ids[1, -1] = 0
    with answering(model), torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[:, :-1].float()
    if float((logits[0] - logits[1]).abs().max()) > noise(model) * float(logits.abs().max()):
        kind = model.config.model_type
        raise ModelError(
            f"the {kind} model sees the tokens it should predict; use a causal model, or give is_decoder: true in its "
            "config"
        )


def noise(model: Any) -> float:
    """Return how far logits that should be equal may differ, as a share of the largest."""
    import torch

    return 1e-5 if next(model.parameters()).dtype == torch.float32 else 1e-2


def positions_of(model: Any) -> int | None:
    """Return how many tokens a model can read (None: its config names no end)."""
    limit = getattr(model.config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def check_positions(model: Any, tokens: int, what: str) -> None:
    """Raise ModelError where a text of `tokens` tokens does not fit the model's positions."""
    limit = positions_of(model)
    if limit is not None and limit < tokens:
        raise ModelError(f"{what}: {tokens} tokens, but the model has {limit} positions; give at most {limit}")
