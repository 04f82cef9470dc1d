"""Trees of tokens → the log-probability of each of their sequences, in as few and as small passes as that takes.

In: a causal model and trees. Out: nats. Hidden states come from the backbone, and the head is applied only where
something is predicted, a few rows at a time. Trade-off: whether a model reads trees right is told by a probe of three
short passes, once a model, since no config says what becomes of a mask and of positions.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from spt.model import answering, check_positions
from spt.model.attention import NAME, on_any_device
from spt.model.head import apply_head, backbone_of, base_of, head_of, is_all_head, rows_at_once
from spt.progress import say
from spt.records import Example
from spt.score.batches import Budget, in_halves
from spt.score.tree import Tree, chains, grow

_TOKENS = {"cpu": 512}
"""Tokens that fill a device: a CPU is no faster with more, and similar lengths pad less."""
_MASKED = ("sdpa", "eager", NAME)
"""Attentions that take a mask of one's own."""

_by_head: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_widths: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def read_trees(model: Any, trees: Sequence[Tree], budget: Budget) -> list[list[float]]:
    """Return the log-probability of each member of each tree, in nats."""
    results: list[list[float]] = [[]] * len(trees)
    longest = max((max(tree.positions, default=0) + 2 for tree in trees), default=0)
    check_positions(model, longest, "a text to be scored")

    def work(positions: list[int]) -> None:
        for position, nats in zip(positions, _read(model, [trees[p] for p in positions]), strict=True):
            results[position] = nats

    budget.tokens = min(budget.tokens, _TOKENS.get(model.device.type, budget.tokens))
    # A batch without branches needs no mask, and goes through the faster kernels.
    for branched in (False, True):
        own = [number for number, tree in enumerate(trees) if tree.branches == branched]
        for batch in budget.batches([len(trees[number]) for number in own]):
            chosen = [own[place] for place in batch]
            in_halves(work, chosen, len(trees[chosen[0]]), budget)
    return results


def _read(model: Any, trees: Sequence[Tree]) -> list[list[float]]:
    width = max(1, *map(len, trees))
    edges = [
        (row * width + node, token, row, place) for row, tree in enumerate(trees) for place, node, token in tree.edges
    ]
    nats = [np.zeros(len(tree.members)) for tree in trees]
    if edges:
        predictors, owners = np.unique([edge[0] for edge in edges], return_inverse=True)
        states = _states(model, trees, width).flatten(0, 1)
        picked = states.index_select(0, torch.from_numpy(predictors).to(states.device))
        values = _edge_nats(model, picked, owners, np.array([edge[1] for edge in edges]))
        for (_, _, row, place), value in zip(edges, values, strict=True):
            nats[row][place] += value
    return [values.tolist() for values in nats]


def _states(model: Any, trees: Sequence[Tree], width: int) -> Tensor:
    """Return hidden states, or logits where the head is not all that makes them: [trees, width, ...]."""
    ids = np.zeros((len(trees), width), dtype=np.int64)
    for row, tree in enumerate(trees):
        ids[row, : len(tree)] = tree.tokens
    inputs = {"input_ids": torch.from_numpy(ids)}
    if any(tree.branches for tree in trees):
        positions = np.zeros_like(ids)
        for row, tree in enumerate(trees):
            positions[row, : len(tree)] = tree.positions
        mask = torch.from_numpy(np.stack([tree.visible(width) for tree in trees]))[:, None]
        if base_of(model).config._attn_implementation == "eager":  # it adds its mask
            dtype = next(model.parameters()).dtype
            mask = torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
        inputs |= {"attention_mask": mask, "position_ids": torch.from_numpy(positions)}
    inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
    if _reads_head(model):
        return backbone_of(model)(**inputs, use_cache=False).last_hidden_state  # type: ignore[no-any-return]  # untyped
    return model(**inputs, use_cache=False).logits  # type: ignore[no-any-return]  # untyped


def _reads_head(model: Any) -> bool:
    base = base_of(model)
    if base not in _by_head:
        with on_any_device(model):
            _by_head[base] = is_all_head(model)
    return _by_head[base]


def _edge_nats(model: Any, states: Tensor, owners: Any, tokens: Any) -> list[float]:
    """Return the log-probability of tokens, each after the state that is its owner."""
    chunk = rows_at_once(model, states.device.type)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(0, len(states) + chunk, chunk))
    nats: list[Tensor] = []
    for number, (start, end) in enumerate(pairwise(bounds)):
        part = states[number * chunk : (number + 1) * chunk]
        logits = (apply_head(head_of(model), part) if _reads_head(model) else part).float()
        of_token = torch.from_numpy(np.stack([owners[order[start:end]] - number * chunk, tokens[order[start:end]]]))
        rows, columns = of_token.to(states.device)
        nats.append(logits.log_softmax(dim=-1)[rows, columns])
    values = np.empty(len(tokens))
    values[order] = torch.cat(nats).double().cpu().numpy()
    return list(values)


def widest_tree(model: Any) -> int:
    """Return how long a text may be for a tree to be read right; 0 where the model cannot read trees at all."""
    base = base_of(model)
    if base not in _widths:
        with answering(model):
            _widths[base] = _window(model) if _reads_trees(model) else 0
        if not _widths[base]:
            kind = base.config.model_type
            say(f"the {kind} model cannot share a prompt among its candidates: it reads the prompt with each")
    return _widths[base]


def _window(model: Any) -> int:
    """Return the tokens that every layer sees: the mask of a tree knows no window."""
    config = base_of(model).config.get_text_config()
    windows = (getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size"))
    return min((window for window in windows if isinstance(window, int) and window > 0), default=1 << 30)


@torch.inference_mode()
def _reads_trees(model: Any) -> bool:
    if base_of(model).config._attn_implementation not in _MASKED:
        return False
    sequences = [(1, 2, 3, 4, 5), (1, 2, 6, 7, 5), (1, 2, 3, 8, 9, 5)]
    examples = [Example(str(number), "original", ids, ids) for number, ids in enumerate(sequences)]
    (tree,) = grow(enumerate(examples))
    try:
        (together,) = _read(model, [tree])
    except (TypeError, ValueError, RuntimeError, KeyError, IndexError, AttributeError):
        return False
    alone = [nats for one in chains(examples) for nats in _read(model, [one])[0]]
    found = [together[tree.members.index(number)] for number in range(len(examples))]
    tolerance = 1e-3 if next(model.parameters()).dtype == torch.float32 else 3e-2
    return bool(np.allclose(found, alone, rtol=tolerance))
