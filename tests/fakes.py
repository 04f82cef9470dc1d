"""Tokenizers of each kind and two-layer random models, made in memory."""

import functools
from typing import Any

import torch
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CORPUS = [
    "Ann Lee directed The Sea.",
    "The botanist of Oslo is Uriah Hawthorne.",
    "Daphne Barrington, who painted the harbour, lives in Lyon.",
    "東京は日本の首都です。",
    "Zoë naïvely café été.",
    "abc NOP ab NO qQ qQ xyz",
] * 4
# Scripts, joined emoji, combining marks, no-break and other white space, a token's own sign.
ODD = [
    "Ann Lee", " directed", "The Sea.", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "漢字。", "かな", "ไทย", "עברית",
    "العربية", "हिन्दी", "👩\u200d🚀", "e\u0301", "n\u0303o", "ﬁ", "½", "ß", "İ", "▁", "##a", "Ġ", "\x00", "x" * 40,
]  # fmt: skip
_LETTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TEXT = st.lists(st.one_of(st.sampled_from(ODD), _LETTERS), max_size=12).map("".join)


@functools.cache
def byte_level() -> Any:
    """Like GPT-2's: nothing is added, the end token is the only special one, there is no padding."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")


@functools.cache
def metaspace() -> Any:
    """Like Llama's: a beginning token is added, the end token pads too."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<unk>", "<s>", "</s>", "<unused0>"]
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


@functools.cache
def wordpiece() -> Any:
    """Like BERT's: lower case, accents removed, a frame of [CLS] and [SEP]."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )


TOKENIZERS = {"byte_level": byte_level, "metaspace": metaspace, "wordpiece": wordpiece}


def tiny_config(kind: str = "llama", **values: Any) -> dict[str, Any]:
    """Keys of a two-layer model in transformers' names."""
    own = {"intermediate_size": 48, "num_key_value_heads": 2} if kind == "llama" else {}
    return {
        "model_type": kind, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 128, **own, **values,
    }  # fmt: skip


def tiny_model(
    kind: str, tokenizer: Any, *, seed: int = 0, scale: float = 0.3, attention: str = "eager", **values: Any
) -> Any:
    """A random model; `scale` is far above the usual 0.02, so that its answers differ."""
    torch.manual_seed(seed)
    config = tiny_config(kind, initializer_range=scale, vocab_size=len(tokenizer), **values)
    special = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**config, **special), dtype=torch.float32, attn_implementation=attention
    ).eval()
