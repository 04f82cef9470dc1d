"""What a model must be for this pipeline: causal, and long enough.

Trade-off: causality is probed with two tiny forward passes, since a config does not tell it for every architecture.
"""

from typing import Any

from spt.errors import ModelError


def check_causal(model: Any) -> None:
    """Raise ModelError where a token changes what is predicted before it (a BERT that was not made a decoder)."""
    import torch

    device = next(model.parameters()).device
    ids = torch.ones((2, 4), dtype=torch.long, device=device)
    ids[1, -1] = 0
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[:, :-1].float()
    model.train(was_training)
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


def check_positions(model: Any, tokens: int, what: str) -> None:
    """Raise ModelError where a text of `tokens` tokens does not fit the model's positions."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if isinstance(limit, int) and 0 < limit < tokens:
        raise ModelError(f"{what}: {tokens} tokens, but the model has {limit} positions; give at most {limit}")
