"""Next-token prediction: model and batch → the summed loss in nats.

Logits are made a few rows at a time, only where the next token is learned, so that a large vocabulary does not set the
peak of memory:

    head frozen     a chunk's gradient is made with its loss, and only the hidden states' gradient is kept
    head trained    a chunk's logits are made again in the backward pass

Trade-off: where a model changes its logits after the head, all of a micro-batch's logits are in memory.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from spt.batch import Batch, collate
from spt.loss.draw import Draw
from spt.model import Prepared
from spt.model.adapter import adapted_layers, inputs_as_they_come
from spt.model.attention import on_any_device
from spt.model.head import apply_head, backbone_of, base_of, head_of, is_all_head, rows_at_once, trained_rows
from spt.progress import say
from spt.records import Example, Tag


class CausalLoss(nn.Module):
    """Next-token prediction. `compiler` names a backend of torch.compile for the model (None: none)."""

    def __init__(self, model: Any, compiler: str | None = None) -> None:
        super().__init__()
        self.model = model
        with on_any_device(model):
            self.by_head = is_all_head(model)
        if not self.by_head:
            say(f"the {model.config.model_type} model changes its logits after the head: all of a micro-batch are kept")
        self._adapted = adapted_layers(model)
        run = self._run
        self._call = run if compiler is None else torch.compile(run, backend=compiler, dynamic=True)

    @classmethod
    def prepare(cls, prepared: Prepared) -> int | None:
        """Return the id that stands for a masked token; None where nothing is masked.

        Raises ModelError for an architecture that cannot be trained in this way.
        """
        cls.check(prepared.model)
        return cls.choose_mask(prepared.tokenizer, prepared.tag)

    @staticmethod
    def check(model: Any) -> None:
        """Raise ModelError for an architecture that cannot be trained in this way."""

    @staticmethod
    def choose_mask(tokenizer: Any, tag: Tag | None) -> int | None:
        """Return the id that stands for a masked token; None where nothing is masked."""
        return None

    @staticmethod
    def collate(examples: Sequence[Example], pad_id: int, draw: Draw, *, packing: bool = False) -> Batch:
        """Return examples as this objective learns them; what is drawn is a function of `draw` and their ids alone."""
        return collate(examples, pad_id, packing=packing)

    @property
    def _no_split_modules(self) -> Any:
        """Return the names of the layers that FSDP2 shards one by one: accelerate asks its module for them."""
        return base_of(self.model)._no_split_modules

    def tie_weights(self) -> None:
        """Tie the head to the embeddings again: accelerate asks for it where it moved them one by one."""
        base_of(self.model).tie_weights()

    def _run(self, **inputs: Any) -> Tensor:
        """Return hidden states, or logits where the head is not all that makes them."""
        if self.by_head:
            return backbone_of(self.model)(use_cache=False, **inputs).last_hidden_state  # type: ignore[no-any-return]  # untyped
        return self.model(use_cache=False, **inputs).logits  # type: ignore[no-any-return]  # untyped

    def forward(
        self,
        input_ids: Int[Tensor, "rows width"],
        labels: Int[Tensor, "rows width"],
        predictors: Int[Tensor, " predicted"],
        **layout: Any,
    ) -> Float[Tensor, ""]:
        """Return the sum over target tokens of -log p, in nats, in float32.

        `predictors` are positions of the flattened batch, each with its target after it; `layout` is what a packed row
        brings along.
        """
        with inputs_as_they_come(self._adapted, input_ids.device.type):
            output = self._call(input_ids=input_ids, **layout).flatten(0, 1)
        targets = labels.flatten()[predictors + 1]
        if not len(predictors):
            logits = apply_head(head_of(self.model), output[:1]) if self.by_head else output[:1]
            return logits.float().sum() * 0.0  # a row of weight zero still takes part in the backward pass
        picked = output.index_select(0, predictors)
        if self.by_head:
            chunk = rows_at_once(self.model, picked.device.type)
            return head_loss(head_of(self.model), picked, targets, chunk)
        return functional.cross_entropy(picked.float(), targets, reduction="sum")


class _Known(torch.autograd.Function):
    """A value whose gradients were made along with it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *leaves: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(gradient * upstream for gradient in ctx.saved_tensors)


def head_loss(
    head: nn.Module,
    hidden: Float[Tensor, "predicted size"],
    targets: Int[Tensor, " predicted"],
    chunk: int,
) -> Float[Tensor, ""]:
    """Return the summed cross-entropy of a head's logits, in nats, made `chunk` rows at a time."""
    count = ceil(len(targets) / chunk)
    chunks = list(zip(hidden.tensor_split(count), targets.tensor_split(count), strict=True))
    rows = [weight for _, weight in trained_rows(head)]
    trained = [weight for weight in head.parameters() if weight.requires_grad]
    if not torch.is_grad_enabled() or (count == 1 and trained):
        return torch.stack([_nats(head, *part) for part in chunks]).sum()
    if any(all(weight is not row for row in rows) for weight in trained):
        return torch.stack([checkpoint(_nats, head, *part, use_reentrant=False) for part in chunks]).sum()
    nats, gradients = zip(*(_nats_and_gradients(head, *part, rows) for part in chunks), strict=True)
    of_hidden, *of_rows = zip(*gradients, strict=True)
    summed = (torch.stack(parts).sum(dim=0) for parts in of_rows)
    known: Tensor = _Known.apply(torch.stack(nats).sum(), (torch.cat(of_hidden), *summed), hidden, *rows)  # type: ignore[no-untyped-call]  # torch's
    return known


def _nats(head: nn.Module, hidden: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(apply_head(head, hidden).float(), targets, reduction="sum")


def _nats_and_gradients(
    head: nn.Module, hidden: Tensor, targets: Tensor, rows: Sequence[Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the nats of a chunk and their gradients.

    The logits become their own gradient, softmax - target, in one place: autograd would keep three more of that size.
    """
    hidden = hidden.detach().requires_grad_()
    logits = apply_head(head, hidden)
    with torch.no_grad():
        wide = logits.detach().to(torch.float32, copy=True)
        wide -= wide.amax(dim=-1, keepdim=True)
        nats = -wide.gather(-1, targets[:, None]).sum()
        total = wide.exp_().sum(dim=-1, keepdim=True)
        nats += total.log().sum()
        wide /= total
        wide.scatter_add_(-1, targets[:, None], torch.full_like(targets[:, None], -1.0, dtype=wide.dtype))
        upstream = wide.to(logits.dtype)
    with torch.autocast(hidden.device.type, enabled=False):  # gradients have the dtypes that the forward pass chose
        return nats, torch.autograd.grad(logits, (hidden, *rows), upstream)
