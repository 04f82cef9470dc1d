"""Ordering → Example: the ids and labels of a permuted text.

    text       The Sea. directed Ann Lee
    input_ids  <bos> [tag] The _Sea . _directed _Ann _Lee <eos>
    labels     -100  -100  The _Sea . _directed _Ann _Lee <eos>

The ids are those of the permuted text encoded as a whole, since that is how text meets the model later: units encoded
apart would meet at other token boundaries. Trade-off: every epoch encodes again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from spt.errors import ModelError
from spt.records import Example, Ordering

IGNORED = -100
"""The label of a token that is not learned; torch's own default."""


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


@dataclass(frozen=True)
class Tag:
    """What stands before every example that is not in its original order: one token, or plain text."""

    token_id: int | None = None
    text: str = ""


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
        """Read the tokenizer's frame once."""
        self.frame = frame_of(self.tokenizer)

    def encode(self, orderings: Sequence[Ordering]) -> list[Example]:
        """Return the examples of orderings, without those that are too long where `too_long` is `reject`."""
        if not orderings:
            return []
        tagged = [self._tag_text(ordering) for ordering in orderings]
        encoded = self.tokenizer(
            [tag + ordering.text for tag, ordering in zip(tagged, orderings, strict=True)],
            add_special_tokens=False,
            return_offsets_mapping=self.loss_on == "completion",
            return_attention_mask=False,
            verbose=False,
        )
        offsets = encoded["offset_mapping"] if self.loss_on == "completion" else [None] * len(orderings)
        examples = [
            self._example(ordering, ids, None if spans is None else self._learned(ordering, len(tag), spans))
            for ordering, tag, ids, spans in zip(orderings, tagged, encoded["input_ids"], offsets, strict=True)
        ]
        return [example for example in examples if example is not None]

    def _is_tagged(self, ordering: Ordering) -> bool:
        return self.tag is not None and ordering.order != "original"

    def _tag_text(self, ordering: Ordering) -> str:
        return self.tag.text if self.tag is not None and self._is_tagged(ordering) else ""

    def _example(self, ordering: Ordering, ids: list[int], learned: list[bool] | None) -> Example | None:
        prefix = list(self.frame.prefix)
        if self.tag is not None and self.tag.token_id is not None and self._is_tagged(ordering):
            prefix.append(self.tag.token_id)
        labels = ids if learned is None else [i if keep else IGNORED for i, keep in zip(ids, learned, strict=True)]
        input_ids = (*prefix, *ids, *self.frame.suffix)
        all_labels = (*[IGNORED] * len(prefix), *labels, *self.frame.suffix)
        if len(input_ids) > self.max_length:
            self.counts[f"too_long_{self.too_long}"] += 1
            if self.too_long == "reject":
                return None
            # The end token goes with what was cut off: a text cut short has no end to learn.
            input_ids, all_labels = input_ids[: self.max_length], all_labels[: self.max_length]
        return Example(ordering.id, ordering.order, input_ids, all_labels)

    def _learned(self, ordering: Ordering, shift: int, spans: Sequence[tuple[int, int]]) -> list[bool]:
        """Return for each token whether it ends in the completion, by where its last character stood in the record."""
        start = ordering.completion_start
        if start is None:
            raise ModelError(
                f"record {ordering.id!r} has no completion, so loss_on: completion has nothing to learn; map "
                "data.train.fields.prompt and .completion, or use loss_on: sequence."
            )
        origin = [-1] * shift
        for piece in ordering.pieces:
            length = piece.end - piece.start
            origin += [-1] * length if piece.source is None else range(piece.source, piece.source + length)
        if any(first < last - 1 and origin[first] < start <= origin[last - 1] for first, last in spans):
            self.counts["token_spans_prompt_and_completion"] += 1
        return [last > 0 and origin[last - 1] >= start for _, last in spans]
