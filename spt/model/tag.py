"""The order tag: what stands before an example whose units moved.

`auto` takes an unused reserved token of the tokenizer, else adds a token; the name of a special token is that token;
any other string is plain text. Trade-off: "unused" is judged by the token's name, since no tokenizer says so.
"""

import re
from typing import Any

from spt.errors import ModelError
from spt.records import Tag

NEW_TOKEN = "<|order|>"  # noqa: S105  # a token of text, no secret
_RESERVED = (
    r"reserved", r"unused", r"<\|?extra_(id_)?\d+", r"dummy", r"placeholder", r"^<(empty_output|gh_stars)>$",
)  # fmt: skip
"""Names of tokens that tokenizers keep free, the freest first; the last are StarCoder's, unused by its heirs."""


def choose_tag(tokenizer: Any, order_tag: str | None) -> Tag | None:
    """Return the tag that `permute.order_tag` asks for; with `auto` a token may be added to the tokenizer.

    Raises ModelError for a blank tag, or one that already means something else.
    """
    if order_tag is None:
        return None
    if not order_tag.strip():
        raise ModelError(f"permute.order_tag: {order_tag!r} is blank; give auto, a token, or a text such as '[moved] '")
    if order_tag == "auto":
        reserved = _reserved_token(tokenizer)
        return _order_token(tokenizer) if reserved is None else Tag(token_id=reserved)
    if order_tag not in {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}:
        return Tag(text=order_tag)
    token_id = int(tokenizer.convert_tokens_to_ids(order_tag))
    if token_id in _used(tokenizer):
        raise ModelError(
            f"permute.order_tag: {order_tag!r} begins, ends, pads or replaces text in this tokenizer, and a tag is "
            "never generated; give auto, an unused token, or a text such as '[moved] '"
        )
    return Tag(token_id=token_id)


def _used(tokenizer: Any) -> set[int | None]:
    return {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id}


def choose_mask(tokenizer: Any, tag: Tag | None) -> int:
    """Return the id that stands for a masked token: the tokenizer's own, a reserved one, or one that learns nothing.

    Masked tokens are never attended to, so that even the unknown token (as in BICO's code) or the end confuses nobody.
    """
    taken = None if tag is None else tag.token_id
    special = (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id)
    found = (tokenizer.mask_token_id, _reserved_token(tokenizer, taken), *special)
    chosen = [token_id for token_id in found if token_id is not None and token_id != taken]
    if not chosen:
        raise ModelError(f"{tokenizer.name_or_path}: no token can stand for a masked one; set tokenizer.mask_token")
    return int(chosen[0])


def _reserved_token(tokenizer: Any, taken: int | None = None) -> int | None:
    used = _used(tokenizer) | {taken}
    added = sorted(tokenizer.get_added_vocab().items(), key=lambda item: item[1])
    for pattern in _RESERVED:
        for name, token_id in added:
            if token_id not in used and re.search(pattern, name):
                return int(token_id)
    return None


def _order_token(tokenizer: Any) -> Tag:
    """Return our own token, added where an earlier training has not left it in the tokenizer."""
    new = NEW_TOKEN not in tokenizer.get_added_vocab()
    if new:
        tokenizer.add_special_tokens({"additional_special_tokens": [NEW_TOKEN]}, replace_extra_special_tokens=False)
    return Tag(token_id=int(tokenizer.convert_tokens_to_ids(NEW_TOKEN)), new=new)


def fit_embeddings(model: Any, tag: Tag | None) -> bool:
    """Return whether the model's vocabulary had to grow for the tag.

    A new token's rows are the mean of all others, in the input and the output embedding alike (a row of zeros or noise
    would be an outlier that the model has never met). A token that was there before keeps its rows.
    """
    import torch

    if tag is None or tag.token_id is None or not tag.new:
        return False
    rows = int(model.get_input_embeddings().weight.shape[0])
    grown: bool = tag.token_id >= rows
    if grown:
        model.resize_token_embeddings(tag.token_id + 1, mean_resizing=False)
    with torch.no_grad():
        for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
            weight = layer.weight
            weight[tag.token_id] = weight[: min(rows, tag.token_id)].float().mean(dim=0).to(weight.dtype)
    return grown


def suppress_tag(generation_config: Any, tokenizer: Any, tag: Tag | None) -> None:
    """Make a generation config never write the tag, so that a user of the model need not know of it."""
    if tag is None:
        return
    if tag.token_id is not None:
        generation_config.suppress_tokens = [*(generation_config.suppress_tokens or []), tag.token_id]
    else:
        words = tokenizer(tag.text.strip(), add_special_tokens=False)["input_ids"]
        generation_config.bad_words_ids = [*(generation_config.bad_words_ids or []), words]
