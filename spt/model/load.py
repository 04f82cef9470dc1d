"""Tokenizers and models, ready to train or to ask.

    prepare_model   config → Prepared(model, tokenizer, tag): what training starts from
    load_trained    folder or Hub id → (model, tokenizer): what evaluation and `spt ask` read

Trade-off: everything that is trained is kept in float32, even where computation is bfloat16.
"""

import logging
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spt.artifact import read_json
from spt.config import Model
from spt.errors import ModelError
from spt.model.adapter import add_lora, load_adapter
from spt.model.scratch import build_model
from spt.model.source import GIVE_A_MODEL, READ_ERRORS, first_line, resolve_base
from spt.model.tag import choose_tag, fit_embeddings, suppress_tag
from spt.records import Tag

# What pads a text on the right needs no mask, since no token of a causal model sees it; GPT-2 would say otherwise.
logging.getLogger("transformers.modeling_utils").addFilter(
    lambda entry: "passing in an `attention_mask`" not in entry.getMessage()
)


@dataclass(frozen=True)
class Prepared:
    """A model with what training needs to know of it. `grown`: its vocabulary is larger than its base's."""

    model: Any
    tokenizer: Any
    tag: Tag | None
    grown: bool


def prepare_model(settings: Model, tokenizer: Any, order_tag: str | None, seed: int) -> Prepared:
    """Return the model to train, with its adapters and its tag: on the CPU, or where its 4-bit weights must lie.

    Raises ModelError.
    """
    if settings.load_in_4bit and settings.lora is None:
        raise ModelError("model.load_in_4bit: 4-bit weights cannot be trained; give model.lora, or remove load_in_4bit")
    tag = choose_tag(tokenizer, order_tag)
    if settings.from_scratch is not None:
        model = build_model(settings.from_scratch, tokenizer, seed)
    else:
        model = load_base(settings, trained_whole=settings.lora is None, quantized=settings.load_in_4bit)
    grown = fit_embeddings(model, tag)
    if grown and settings.load_in_4bit:
        raise ModelError(
            f"permute.order_tag: {order_tag!r} adds a token, which would be merged into the base, and 4-bit weights "
            "cannot be; give a text such as '[moved] ', or model.load_in_4bit: false"
        )
    suppress_tag(model.generation_config, tokenizer, tag)
    if settings.lora is not None:
        model = add_lora(model, {"revision": settings.revision, **settings.lora}, tag, seed)
    return Prepared(model, tokenizer, tag, grown)


def load_tokenizer(settings: Model) -> Any:
    """Return the tokenizer of a pretrained base."""
    assert settings.base is not None
    return _load("tokenizer", resolve_base(settings.base), settings.revision, settings.trust_remote_code)


def read_tokenizer(place: str) -> Any:
    """Return the tokenizer in a folder that `save_pretrained` wrote."""
    return _load("tokenizer", place, None, trust_remote_code=False)


def load_base(settings: Model, *, trained_whole: bool = False, quantized: bool = False) -> Any:
    """Return a pretrained base in the dtype of computation, in float32 where it is trained whole, or in 4 bits."""
    import torch

    assert settings.base is not None
    dtype = torch.float32 if trained_whole else getattr(torch, settings.dtype)
    extra = {} if settings.attn_implementation is None else {"attn_implementation": settings.attn_implementation}
    extra |= _four_bits(dtype) if quantized else {}
    base = resolve_base(settings.base)
    return _load("model", base, settings.revision, settings.trust_remote_code, dtype=dtype, **extra)


def _four_bits(dtype: Any) -> dict[str, Any]:
    """Return how a base is loaded for QLoRA (Dettmers et al., 2305.14314): nf4, double quantization.

    Embeddings, norms and head stay as they are: autocast computes in `dtype` whatever theirs is.
    """
    import torch
    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise ModelError("model.load_in_4bit: needs bitsandbytes; run `pip install bitsandbytes`, or remove it")
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device is None:  # on a CPU, bitsandbytes 0.50 passes no gradient on once it has packed weights for inference
        raise ModelError("model.load_in_4bit: needs a GPU, and there is none here; remove load_in_4bit")
    place = f"{device.type}:{os.environ.get('LOCAL_RANK', 0)}"
    quantization = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )
    return {"quantization_config": quantization, "device_map": {"": place}}


def load_trained(place: str, *, dtype: str = "float32", trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Return (model, tokenizer) from a folder of `spt train`, any model folder, an adapter, a Hub id or a GGUF file.

    The generation config beside an adapter is applied, since peft loads none. Raises ModelError.
    """
    import torch

    folder = Path(place)
    kind = getattr(torch, dtype)
    if not (folder / "adapter_config.json").exists():
        base = resolve_base(place)
        model = _load("model", base, None, trust_remote_code, dtype=kind)
        return model.eval(), _load("tokenizer", base, None, trust_remote_code)
    from transformers import GenerationConfig

    adapter = read_json(folder / "adapter_config.json")
    base, revision = str(adapter.get("base_model_name_or_path")), adapter.get("revision")
    model = load_adapter(_load("model", base, revision, trust_remote_code, dtype=kind), place)
    if (folder / "generation_config.json").exists():
        model.generation_config = GenerationConfig.from_pretrained(place)
        model.base_model.model.generation_config = model.generation_config
    own = (place, None) if (folder / "tokenizer_config.json").exists() else (base, revision)
    return model.eval(), _load("tokenizer", *own, trust_remote_code)


def _load(what: str, place: str, revision: str | None, trust_remote_code: bool, **extra: Any) -> Any:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"revision": revision, "trust_remote_code": trust_remote_code, **extra}
    try:
        if what == "tokenizer":
            return AutoTokenizer.from_pretrained(place, **options)
        model, found = AutoModelForCausalLM.from_pretrained(place, output_loading_info=True, **options)
    except READ_ERRORS as error:
        raise ModelError(f"{place}: the {what} cannot be loaded ({first_line(error)}). {GIVE_A_MODEL}") from error
    if found["missing_keys"]:  # transformers would go on with random numbers in their place
        missing = sorted(found["missing_keys"])
        raise ModelError(
            f"{place}: {len(missing)} weights are missing ({', '.join(missing[:3])} ...); fetch or save the model again"
        )
    return model
