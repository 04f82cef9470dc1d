"""Norms and gated layers that keep less for the backward pass, with the numbers of transformers' own.

    RMS norm       keeps its input as it came and one number a token; autograd keeps a copy in float32
    gated layer    keeps gate and up; autograd keeps the activation too

In: a model. Out: the same model, whose modules of those two kinds (Llama, Mistral, Qwen, SmolLM and relatives) run
through here; a kind is told by what its forward pass does on a sample, bit for bit, never by its name. Trade-off: a
norm's gradient is written out here; the activation is computed again, one pass over it in the backward pass.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spt.model.head import base_of


class _Norm(torch.autograd.Function):
    """weight * (x / sqrt(mean(x ** 2) + epsilon)), computed in float32: Zhang and Sennrich, 1910.07467."""

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "... size"], weight: Float[Tensor, " size"], epsilon: float
    ) -> Float[Tensor, "... size"]:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
        ctx.save_for_backward(x, weight, scale)
        return weight * (wide * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        normed = x.float() * scale
        of_weight = None
        if ctx.needs_input_grad[1]:
            of_weight = (upstream * normed.to(x.dtype)).flatten(0, -2).sum(dim=0).to(weight.dtype)
        if not ctx.needs_input_grad[0]:
            return None, of_weight, None
        gradient = (upstream * weight).float()
        along = (gradient * normed).mean(-1, keepdim=True)
        of_x = gradient.sub_(normed.mul_(along)).mul_(scale)
        return of_x.to(x.dtype), of_weight, None


class _Gate(torch.autograd.Function):
    """activation(gate) * up: Shazeer, 2002.05202."""

    @staticmethod
    def forward(
        ctx: Any, activation: Callable[[Tensor], Tensor], gate: Float[Tensor, "... size"], up: Float[Tensor, "... size"]
    ) -> Float[Tensor, "... size"]:
        ctx.activation = activation
        ctx.save_for_backward(gate, up)
        return activation(gate) * up

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gate, up = (part.detach() for part in ctx.saved_tensors)
        with torch.enable_grad():
            active = ctx.activation(gate.requires_grad_())
        (of_gate,) = torch.autograd.grad(active, gate, upstream * up)
        return None, of_gate, upstream * active.detach()


def _norm(module: Any, hidden_states: Tensor) -> Tensor:
    return _Norm.apply(hidden_states, module.weight, module.variance_epsilon)  # type: ignore[no-any-return, no-untyped-call]  # torch's decorators are untyped


def _gated(module: Any, x: Tensor) -> Tensor:
    inner = _Gate.apply(module.act_fn, module.gate_proj(x), module.up_proj(x))  # type: ignore[no-untyped-call]  # as above
    return module.down_proj(inner)  # type: ignore[no-any-return]  # a module's attribute has any type


_KINDS: dict[Callable[[Any, Tensor], Tensor], tuple[str, ...]] = {
    _norm: ("weight", "variance_epsilon"),
    _gated: ("gate_proj", "up_proj", "down_proj", "act_fn"),
}
"""What takes the place of a forward pass -> what its module must have."""


def keep_less(model: Any) -> None:
    """Let a model's norms and gated layers keep less for the backward pass, where their kind is known."""
    known: dict[type, Callable[[Any, Tensor], Tensor] | None] = {}
    for module in base_of(model).modules():
        kind = type(module)
        if kind not in known:
            known[kind] = next((lean for lean, parts in _KINDS.items() if _does(module, lean, parts)), None)
        lean = known[kind]
        if lean is not None:
            module.forward = partial(lean, module)


def _does(module: nn.Module, lean: Callable[[Any, Tensor], Tensor], parts: tuple[str, ...]) -> bool:
    """Return whether a module's class computes what `lean` does, tried on a small stand-in that has only its parts."""
    if not all(hasattr(module, part) for part in parts):
        return False
    stand_in, x = _stand_in(), torch.linspace(-3, 3, 24, dtype=torch.bfloat16).view(3, 8)
    try:
        with torch.no_grad():
            return torch.equal(type(module).forward(stand_in, x), lean(stand_in, x))
    except (AttributeError, RuntimeError, TypeError):  # it does more than `lean`, with more than the stand-in has
        return False


def _stand_in() -> Any:
    """Return a namespace with the parts of every kind, at sizes of eight."""
    weight = torch.linspace(0.5, 2, 8, dtype=torch.bfloat16)
    scales = {name: partial(torch.mul, weight + number) for number, name in enumerate(_KINDS[_gated][:3])}
    return SimpleNamespace(weight=weight, variance_epsilon=0.25, act_fn=nn.functional.silu, **scales)
