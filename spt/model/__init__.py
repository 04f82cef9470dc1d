"""Tokenizers and models: from the Hub, a folder, a GGUF file, or scratch; adapters and tags."""

from spt.model.adapter import check_lora
from spt.model.load import Prepared, load_base, load_tokenizer, load_trained, prepare_model
from spt.model.scratch import build_model, train_tokenizer
from spt.model.source import fingerprint, resolve_base

__all__ = [
    "Prepared",
    "build_model",
    "check_lora",
    "fingerprint",
    "load_base",
    "load_tokenizer",
    "load_trained",
    "prepare_model",
    "resolve_base",
    "train_tokenizer",
]
