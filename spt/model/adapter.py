"""LoRA through peft: its own keys, checked before anything is loaded.

Trade-off: a tag's row is trained as a delta of one row (`trainable_token_indices`), so the base stays as it was and
the adapter loads onto it.
"""

import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spt.errors import DamagedError, ModelError, WorkError
from spt.model.source import READ_ERRORS, first_line
from spt.records import Tag


def check_lora(settings: Mapping[str, Any]) -> None:
    """Raise ModelError for a key that peft's LoraConfig does not have."""
    import inspect

    from peft import LoraConfig

    known = list(inspect.signature(LoraConfig).parameters)
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else "It is no key of peft's LoraConfig."
            raise ModelError(f"model.lora.{key}: unknown key. {hint}")


def _with_tag(indices: Any, token_id: int) -> list[int]:
    if not isinstance(indices, list | None):
        raise ModelError(
            f"model.lora.trainable_token_indices: {indices!r}; with permute.order_tag give a list of token ids"
        )
    return sorted({*(indices or []), token_id})


def add_lora(model: Any, settings: Mapping[str, Any], tag: Tag | None, seed: int) -> Any:
    """Return the model with LoRA adapters in float32; the tag's row is trained with them.

    Raises ModelError where peft refuses the settings.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    check_lora(settings)
    values = {"target_modules": "all-linear", "task_type": "CAUSAL_LM", **settings}
    if tag is not None and tag.token_id is not None:
        values["trainable_token_indices"] = _with_tag(values.get("trainable_token_indices"), tag.token_id)
    torch.manual_seed(seed)
    try:
        with _quiet():
            adapted = get_peft_model(model, LoraConfig(**values))
    except Exception as error:  # the values are the user's, and peft raises many kinds
        raise ModelError(f"model.lora: {type(error).__name__}: {error}") from error
    if not any(parameter.requires_grad for parameter in adapted.parameters()):
        raise ModelError("model.lora: nothing would be trained; remove inference_mode, or name other target_modules")
    return adapted


def load_adapter(model: Any, folder: str) -> Any:
    """Return the model with the adapter in a folder.

    Raises ModelError where it does not fit.
    """
    from peft import PeftModel

    try:
        with _quiet():
            return PeftModel.from_pretrained(model, folder)
    except READ_ERRORS as error:
        raise ModelError(
            f"{folder}: the adapter does not load onto {model.name_or_path} ({first_line(error)}). Give the folder "
            "that `spt train` wrote, and keep its base as it was."
        ) from error


def scale_adapter(model: Any, scale: float) -> None:
    """Multiply what an adapter adds to its base's layers; rows that are learned whole, such as a tag's, stay."""
    from peft.tuners.lora import LoraLayer

    for layer in model.modules():
        if isinstance(layer, LoraLayer):
            layer.scale_layer(scale)


def adapted_layers(model: Any) -> list[Any]:
    """Return the layers whose input peft casts to the dtype of their adapter."""
    return [module for module in model.modules() if getattr(module, "cast_input_dtype_enabled", False)]


@contextmanager
def inputs_as_they_come(layers: Sequence[Any], device: str) -> Iterator[None]:
    """Keep peft from casting, where autocast does.

    An adapter in float32 would have its input cast up by peft, down again by autocast, and kept once for each layer
    that reads it. The numbers are the same.
    """
    import torch

    casting = not torch.is_autocast_enabled(device)
    for layer in layers:
        layer.cast_input_dtype_enabled = casting
    try:
        yield
    finally:
        for layer in layers:
            layer.cast_input_dtype_enabled = True


def untrained(model: Any) -> list[str]:
    """Return the adapted modules that learned nothing: their LoRA matrix B is still the zeros it began as.

    Raises WorkError where that is all of them. An `init_lora_weights` that fills B at first hides it.
    """
    still: dict[str, bool] = {}
    for name, parameter in model.named_parameters():
        module, lora, _ = name.partition(".lora_B.")
        if not lora:
            module, lora, _ = name.partition(".lora_embedding_B.")
        if lora:
            still[module.removeprefix("base_model.model.")] = not parameter.any()
    names = [name for name, zeros in still.items() if zeros]
    if names and len(names) == len(still):
        raise WorkError(
            f"the adapter learned nothing: all {len(names)} of its B matrices are zeros ({', '.join(names[:3])} ...). "
            "Train more steps (the first of a warm-up moves nothing), or raise train.learning_rate."
        )
    return names


def verify_adapter(model: Any, folder: Path) -> None:
    """Raise DamagedError where the adapter file in a folder does not hold what the model holds, finite and complete."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import load_file

    file = folder / "adapter_model.safetensors"
    try:
        found = load_file(file)
    except READ_ERRORS as error:
        raise DamagedError(f"{file}: cannot be read back ({first_line(error)}); {_AGAIN}") from error
    with _quiet():
        wanted = get_peft_model_state_dict(model)
    if wanted.keys() != found.keys():
        names = ", ".join(sorted(wanted.keys() ^ found.keys())[:3])
        raise DamagedError(f"{file}: holds other tensors than were trained ({names}); {_AGAIN}")
    for name, tensor in wanted.items():
        if not torch.equal(found[name], tensor.cpu()) or not torch.isfinite(found[name]).all():
            raise DamagedError(f"{file}: {name} is not what was trained, or not finite; {_AGAIN}")


_AGAIN = "check the disk and run the same command again: it goes on from the last checkpoint"


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        # peft reads a name that transformers has since renamed; nothing here depends on it.
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"(transformers|peft)\.")
        # It says so itself that it sets this right, for the layers of GPT-2.
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")
        yield
