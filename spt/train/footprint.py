"""A model that is not there → its parameters, and the bytes a micro-batch leaves behind for its backward pass.

In: `model.*` of an experiment. Out: a model on the meta device, and counts. Only its config is read (from the Hub: a
few kilobytes), no weight is fetched or allocated. Trade-off: what autograd keeps is counted on a dry run of the real
forward pass, whatever the architecture, not by a formula for one of them; that takes seconds for 70 billion parameters.
"""

import logging
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from spt.batch import Batch
from spt.config import Model
from spt.errors import ModelError
from spt.model import build_model, resolve_base
from spt.model.adapter import adapted_layers, add_lora, inputs_as_they_come
from spt.model.attention import fit_attention
from spt.model.head import backbone_of, base_of
from spt.model.lean import keep_less
from spt.model.source import GIVE_A_MODEL, READ_ERRORS, first_line
from spt.records import Tag


def sketch_model(settings: Model, tokenizer: Any, tag: Tag | None) -> Any:
    """Return the model to train, on the meta device, with its adapters: every shape and dtype, no number.

    Raises ModelError where its config cannot be read.
    """
    with torch.device("meta"):
        if settings.from_scratch is not None:
            return build_model(settings.from_scratch, tokenizer, 0)
        model = _from_config(settings)
        return model if settings.lora is None else add_lora(model, settings.lora, tag, 0)


def _from_config(settings: Model) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    assert settings.base is not None
    dtype = torch.float32 if settings.lora is None else getattr(torch, settings.dtype)
    # Flash attention keeps what sdpa keeps, and need not be installed here.
    attention = "eager" if settings.attn_implementation == "eager" else "sdpa"
    extra = {"trust_remote_code": settings.trust_remote_code}
    try:
        config = AutoConfig.from_pretrained(resolve_base(settings.base), revision=settings.revision, **extra)
        return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention, **extra)
    except READ_ERRORS as error:
        raise ModelError(f"{settings.base}: the config cannot be read ({first_line(error)}). {GIVE_A_MODEL}") from error


def saved_bytes(model: Any, dtype: str, batch: Batch, *, on_cpu: bool) -> int | None:
    """Return the bytes that the layers under the head keep for the backward pass of a micro-batch.

    Parameters are not counted, nor their copies in the dtype of computation. None for an architecture that cannot run
    without numbers (experts are chosen by them). The model lies on a pretended CPU afterwards.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    computed = getattr(torch, dtype)
    _set_attention(model, on_cpu=on_cpu)
    keep_less(model)
    layout = {name: value for name, value in batch.inputs("cpu").items() if name not in ("labels", "predictors")}
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # what fails is said by us
    with FakeTensorMode(allow_non_fake_inputs=True):
        pretend(model)
        own = {_identity(parameter) for parameter in model.parameters()}
        kept: dict[int, torch.UntypedStorage] = {}

        def keep(tensor: Tensor) -> Tensor:
            if _identity(tensor) not in own:
                kept[_identity(tensor)] = tensor.untyped_storage()
            return tensor

        in_bfloat16 = torch.autocast("cpu", dtype=torch.bfloat16, enabled=computed == torch.bfloat16)
        try:
            hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
            with in_bfloat16, inputs_as_they_come(adapted_layers(model), "cpu"), hooks:
                backbone_of(model.train())(**layout, use_cache=False)
        except (RuntimeError, NotImplementedError):
            return None
        return sum(storage.nbytes() for storage in kept.values()) - copied_bytes(backbone_of(model), computed)


def _set_attention(model: Any, *, on_cpu: bool) -> None:
    """Give a model the attention that training gives it there; elsewhere one for which no mask is made, as there."""
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    base = base_of(model)
    if on_cpu:
        fit_attention(model, packing=False)
    elif base.config._attn_implementation == "sdpa" and base._can_set_attn_implementation():
        AttentionInterface.register("spt_sketch", sdpa_attention_forward)
        base.set_attn_implementation("spt_sketch")


def copied_bytes(module: nn.Module, computed: torch.dtype) -> int:
    """Return the bytes of the copies that autocast makes of the matrices in a module that are kept in float32."""
    if computed == torch.float32:
        return 0
    weights = [getattr(part, "weight", None) for part in module.modules() if not isinstance(part, nn.Embedding)]
    matrices = {id(w): w for w in weights if isinstance(w, nn.Parameter) and w.ndim == 2 and w.dtype != computed}
    return sum(matrix.numel() for matrix in matrices.values()) * computed.itemsize


def _identity(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def pretend(model: Any) -> None:
    """Move a model from the meta device to a pretended CPU, whose autocast works; call it in a FakeTensorMode."""
    moved: dict[int, Tensor] = {}  # a tied weight stays tied
    for owned, name, tensor in list(_tensors(model)):
        if id(tensor) not in moved:
            empty = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
            is_parameter = isinstance(tensor, nn.Parameter)
            moved[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
        owned[name] = moved[id(tensor)]


def _tensors(model: nn.Module) -> Iterator[tuple[dict[str, Any], str, Tensor]]:
    for module in model.modules():
        for owned in (module._parameters, module._buffers):
            yield from ((owned, name, tensor) for name, tensor in owned.items() if tensor is not None)
