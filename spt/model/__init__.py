"""Tokenizers and models: from the Hub, a folder, a GGUF file, or scratch; adapters and tags."""

from spt.model.adapter import check_lora, untrained, verify_adapter
from spt.model.check import answering, check_causal, check_positions, positions_of
from spt.model.load import Prepared, load_base, load_tokenizer, load_trained, prepare_model, read_tokenizer
from spt.model.scratch import build_model, train_tokenizer
from spt.model.source import fingerprint, resolve_base

__all__ = [
    "Prepared",
    "answering",
    "build_model",
    "check_causal",
    "check_lora",
    "check_positions",
    "fingerprint",
    "load_base",
    "load_tokenizer",
    "load_trained",
    "positions_of",
    "prepare_model",
    "read_tokenizer",
    "resolve_base",
    "train_tokenizer",
    "untrained",
    "verify_adapter",
]
