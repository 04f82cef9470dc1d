"""Ordering → Example: the ids and labels of a permuted text.

    text       The Sea. directed Ann Lee
    input_ids  <bos> [tag] The _Sea . _directed _Ann _Lee <eos>
    labels     -100  -100  The _Sea . _directed _Ann _Lee <eos>

The ids are those of the permuted text encoded as a whole, since that is how text meets the model later: units encoded
apart would meet at other token boundaries. Where tokens themselves are the units, the original text is encoded as a
whole, and its ids move. A context and a tag of plain text are encoded with the text, and not learned: a model that
learned the context would learn to write masks, and to guess words from none. Trade-off: every epoch encodes again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from spt.errors import ModelError
from spt.permute import permute_tokens
from spt.records import Example, Ordering, Tag, TokenOrder

IGNORED = -100
"""The label of a token that is not learned; torch's own default."""

Spans = Sequence[tuple[int, int]]
"""For each token, the (start, end) character offsets of what it stands for."""


@dataclass(frozen=True)
class Frame:
    """The special ids that a tokenizer puts around a text, and the end token learned after it."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]


def frame_of(tokenizer: Any) -> Frame:
    """Return the frame a tokenizer itself adds, ending in its end token.

    A beginning token is used only where the tokenizer adds one. Raises ModelError where nothing can end a text.
    """
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    full = tokenizer("a")["input_ids"]
    start = next(i for i in range(len(full) - len(bare) + 1) if full[i : i + len(bare)] == bare)
    prefix, suffix = tuple(full[:start]), tuple(full[start + len(bare) :])
    if not suffix and tokenizer.eos_token_id is None:
        raise ModelError(
            f"{tokenizer.name_or_path}: the tokenizer has no end token, so a model would never learn to stop; "
            "set tokenizer.eos_token and save it."
        )
    return Frame(prefix, suffix or (tokenizer.eos_token_id,))


@dataclass
class Encoder:
    """Encodes orderings; counts what was cut short, left out, or split inside a token, in `counts`."""

    tokenizer: Any
    tag: Tag | None = None
    max_length: int = 512
    too_long: Literal["truncate", "reject"] = "truncate"
    loss_on: Literal["sequence", "completion"] = "sequence"
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Read the tokenizer's frame once.

        Raises ModelError where a slow tokenizer would have to tell where its tokens stand.
        """
        self.frame = frame_of(self.tokenizer)
        self._special = {*self.tokenizer.all_special_ids, *self.tokenizer.get_added_vocab().values()}
        self._needs_offsets = self.loss_on == "completion" or bool(self.tag and self.tag.text)
        self._check_offsets(self._needs_offsets)

    def _check_offsets(self, needed: bool) -> None:
        if needed and not self.tokenizer.is_fast:
            raise ModelError(
                f"{self.tokenizer.name_or_path}: a slow tokenizer does not tell where its tokens stand, which "
                "loss_on: completion, a tag of plain text, a masked context, and the segmenter token need; save its "
                "fast version and use that."
            )

    def encode(self, orderings: Sequence[Ordering]) -> list[Example]:
        """Return the examples of orderings, without those that are too long where `too_long` is `reject`.

        Raises ModelError for a record without a completion under `loss_on: completion`.
        """
        if not orderings:
            return []
        offsets = self._needs_offsets or any(ordering.tokens is not None or ordering.context for ordering in orderings)
        self._check_offsets(offsets)
        # Before tokens that move, what is not learned is encoded apart: there is no whole to encode.
        heads = [self._head(ordering) if ordering.tokens is None else "" for ordering in orderings]
        texts = [head + ordering.text for head, ordering in zip(heads, orderings, strict=True)]
        ids, spans = self._tokenize(texts, offsets=offsets)
        rows = zip(orderings, heads, ids, spans, strict=True)
        examples = [self._example(*row) for row in rows]
        return [example for example in examples if example is not None]

    def _tokenize(self, texts: list[str], *, offsets: bool) -> tuple[list[list[int]], Sequence[Spans | None]]:
        """Return the ids of texts, and where wanted their spans."""
        if offsets or not self.tokenizer.is_fast:
            encoded = self.tokenizer(
                texts,
                add_special_tokens=False,
                return_offsets_mapping=offsets,
                return_attention_mask=False,
                verbose=False,
            )
            return encoded["input_ids"], encoded["offset_mapping"] if offsets else [None] * len(texts)
        # The same, without keeping spans: a fifth of the time to prepare an example.
        backend = self.tokenizer.backend_tokenizer
        backend.no_padding()
        backend.no_truncation()
        return [found.ids for found in backend.encode_batch_fast(texts, add_special_tokens=False)], [None] * len(texts)

    def _is_tagged(self, ordering: Ordering) -> bool:
        return self.tag is not None and ordering.order != "original"

    def _head(self, ordering: Ordering) -> str:
        """Return the text before an example that is not learned: a tag of plain text, the context."""
        tag = self.tag.text if self.tag is not None and self._is_tagged(ordering) else ""
        return tag + ordering.context

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _example(self, ordering: Ordering, head: str, ids: list[int], spans: Spans | None) -> Example | None:
        prefix, apart = list(self.frame.prefix), ""
        own = (
            ids if spans is None or not head else [i for i, (_, end) in zip(ids, spans, strict=True) if end > len(head)]
        )
        if not self._special.isdisjoint(own):
            self._note_special(ordering, self._special.intersection(own))
        if ordering.tokens is not None and spans is not None:
            ordering, ids, spans = self._move_tokens(ordering, ordering.tokens, ids, spans)
            apart = self._head(ordering)
        if self.tag is not None and self.tag.token_id is not None and self._is_tagged(ordering):
            prefix.append(self.tag.token_id)
        prefix += self._ids(apart) if apart else []
        too_long = len(prefix) + len(ids) + len(self.frame.suffix) > self.max_length
        if too_long:
            self.counts[f"too_long_{self.too_long}"] += 1
            if self.too_long == "reject":
                return None
        labels = ids if spans is None else self._labels(ordering, len(head), ids, spans)
        # The end token goes with what is cut off: a text cut short has no end to learn.
        suffix = () if too_long else self.frame.suffix
        input_ids = (*prefix, *ids, *suffix)[: self.max_length]
        all_labels = (*[IGNORED] * len(prefix), *labels, *suffix)[: self.max_length]
        return Example(ordering.id, ordering.order, input_ids, all_labels)

    def _note_special(self, ordering: Ordering, ids: set[int]) -> None:
        """Count a text that spells out special tokens, which are then learned as such; refuse the tag's own.

        What was put between units, as a sentinel, is meant.
        """
        if self.tag is not None and self.tag.token_id in ids:
            name = self.tokenizer.convert_ids_to_tokens(self.tag.token_id)
            raise ModelError(
                f"record {ordering.id!r} holds the order tag {name} itself; choose another permute.order_tag"
            )
        added = (ordering.text[piece.start : piece.end] for piece in ordering.pieces if piece.source is None)
        signs = {sign for text in added for sign in text.split()}
        if not signs.issuperset(self.tokenizer.convert_ids_to_tokens(sorted(ids))):
            self.counts["special_tokens_in_text"] += 1

    def _move_tokens(
        self, ordering: Ordering, tokens: TokenOrder, ids: list[int], spans: Spans
    ) -> tuple[Ordering, list[int], Spans]:
        """Return the ids of a text in their order, each with its span; a delimiter's have the span (0, 0)."""
        permutation = permute_tokens(tokens, [end for _, end in spans])
        seam = [(i, (0, 0)) for i in (self._ids(tokens.delimiter) if tokens.delimiter else ())]
        rows = [(ids[unit], spans[unit]) for unit in permutation[:1]]
        for before, unit in pairwise(permutation):
            rows += [*(seam if unit != before + 1 else ()), (ids[unit], spans[unit])]
        moved = permutation != list(range(len(ids)))
        ordering = replace(ordering, order=tokens.order if moved else "original")
        return ordering, [i for i, _ in rows], [span for _, span in rows]

    def _labels(self, ordering: Ordering, shift: int, ids: list[int], spans: Spans) -> list[int]:
        """Return the labels: a token is learned where its last character is.

        No character of the head, the first `shift`, is; under `completion` only one that stood in the completion is.
        """
        if self.loss_on == "sequence":
            learned = [end > shift or not shift for _, end in spans]
        else:
            sides = [None] * shift + _sides(ordering)
            if any({True, False} <= set(sides[first:end]) for first, end in spans):
                self.counts["token_spans_prompt_and_completion"] += 1
            learned = [end > 0 and sides[end - 1] is True for _, end in spans]
        return [i if keep else IGNORED for i, keep in zip(ids, learned, strict=True)]


def _sides(ordering: Ordering) -> list[bool | None]:
    """Return for each character whether it stood in the completion (None: nowhere, as a delimiter)."""
    start = ordering.completion_start
    if start is None:
        raise ModelError(
            f"record {ordering.id!r} has no completion, so loss_on: completion has nothing to learn; map "
            "data.train.fields.prompt and .completion, or use loss_on: sequence."
        )
    sides: list[bool | None] = []
    for piece in ordering.pieces:
        places = range(piece.end - piece.start)
        sides += [None if piece.source is None else piece.source + place >= start for place in places]
    return sides
