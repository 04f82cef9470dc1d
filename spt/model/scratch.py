"""A model without pretraining, for controlled experiments: a byte-level BPE trained on the corpus, and random weights.

In: the corpus's texts and `model.from_scratch`. Out: a tokenizer and a model of transformers' own classes.
Trade-off: the tokenizer sees the whole corpus, as a pretrained one would have seen the language.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from spt.config import FromScratch
from spt.errors import ModelError

SPECIAL_TOKENS = ("<|pad|>", "<|bos|>", "<|eos|>", "<|reserved_0|>")
"""A reserved token stands ready as an order tag, so that every method shares one tokenizer."""

_FROM_TOKENIZER = ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")
_ROPE = ("rope_theta", "rope_scaling")
"""Keys that transformers reads into another one."""


def train_tokenizer(texts: Iterable[str], vocab_size: int, signs: Sequence[str] = ()) -> Any:
    """Return a fast byte-level BPE tokenizer that adds a beginning token; any string can be encoded and decoded.

    Each of `signs`, which no text holds and a method writes, is one token more, with the space before it: in bytes a
    mask would be longer than what it hides. Equal texts give an equal tokenizer. Raises ModelError where `vocab_size`
    cannot hold the bytes.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if vocab_size < len(alphabet) + len(SPECIAL_TOKENS):
        least = len(alphabet) + len(SPECIAL_TOKENS)
        raise ModelError(
            f"model.from_scratch.vocab_size: {vocab_size}; the bytes and special tokens alone need {least}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    bos = SPECIAL_TOKENS[1]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    pad, _, eos, reserved = SPECIAL_TOKENS
    trained = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        bos_token=bos,
        eos_token=eos,
        additional_special_tokens=[reserved],
        clean_up_tokenization_spaces=False,
    )
    trained.add_tokens([AddedToken(sign, lstrip=True, normalized=False) for sign in signs])
    return trained


def build_model(settings: FromScratch, tokenizer: Any, seed: int) -> Any:
    """Return a float32 model of `settings.config` with weights drawn from `seed`.

    Raises ModelError for a model type or key that transformers does not know.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    values = dict(settings.config)
    model_type = values.pop("model_type")
    if model_type not in CONFIG_MAPPING:
        near = difflib.get_close_matches(model_type, list(CONFIG_MAPPING.keys()), n=1) or ["llama"]
        raise ModelError(f"model.from_scratch.config.model_type: unknown {model_type!r}. Did you mean {near[0]}?")
    defaults = AutoConfig.for_model(model_type)
    for key in values:
        if key in _FROM_TOKENIZER:
            raise ModelError(f"model.from_scratch.config.{key}: comes from the tokenizer; remove it")
        if not hasattr(defaults, key) and key not in _ROPE:
            near = difflib.get_close_matches(key, list(defaults.to_dict()), n=1)
            hint = f"Did you mean {near[0]}?" if near else f"It is no key of a {model_type} config."
            raise ModelError(f"model.from_scratch.config.{key}: unknown key. {hint}")
    values |= {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    torch.manual_seed(seed)
    try:
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **values), dtype=torch.float32)
    except Exception as error:  # the values are the user's, and transformers raises many kinds
        raise ModelError(f"model.from_scratch.config: {type(error).__name__}: {error}") from error
