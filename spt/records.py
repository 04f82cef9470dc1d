"""The rows that travel through the pipeline, one frozen dataclass a stage.

    Record ──▶ Segmentation ──▶ Ordering ──▶ Example          Question ──▶ Score

Each checks its own invariant when built, so that a later stage never meets a broken one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

Direction = Literal["forward", "reversed"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "reversed")


MATCH_RULES: Mapping[str, str] = {
    "exact": "the prediction equals a target but for white space, punctuation and quotes at the ends; case kept",
    "startswith": "the prediction starts with a target; case ignored",
    "contains": "a target stands anywhere in the prediction; case ignored",
    **{
        f"first_words_{n}": f"the prediction begins with the first {n} word{'s' * (n > 1)} of a target; case and "
        "punctuation ignored"
        for n in range(1, 10)
    },
    "token_f1": "F1 of the words that prediction and target share, in any order, the best target; case, punctuation "
    "and a, an, the ignored (SQuAD)",
    "rouge1_recall": "share of a target's words that stand in the prediction, in any order, the best target; case and "
    "punctuation ignored",
    "states_fact": "a wording of the fact stands in the prediction, or at least 0.8 of a wording's content words do, "
    "in its order; case and punctuation ignored",
    "bleu": "BLEU of the prediction against a target, over words, the best target; case and punctuation ignored "
    "(sacrebleu, one sentence, effective order, exponential smoothing)",
    "logprob": "log-probability of a target after the prompt, summed over its tokens, the best target; nats",
    "logprob_per_token": "log-probability of a target after the prompt, a token, the best target; nats",
    "choice": "a target is more likely than every distractor; only questions that have some",
    "mrr": "1 / rank of the likeliest target among all targets of the set with the question's direction and relation; "
    "ties at their mean rank",
    **{
        f"hits_{k}": f"the likeliest target is among the first {k} of all targets of the set with the question's "
        "direction and relation; ties at their mean rank"
        for k in (1, 5, 10)
    },
}
"""What each metric measures, in one line: printed with every number. More is better in all of them."""
IN_NATS = ("logprob", "logprob_per_token")
"""The metrics that are no fractions of 1."""


@dataclass(frozen=True, slots=True)
class Record:
    """One text of a corpus, with where it came from.

    `completion_start` is the character offset where a `completion` field began (None: the text is one field).
    `columns` holds the other fields of the row, untouched.
    """

    id: str
    text: str
    source: str
    line: int
    completion_start: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A text and the character offsets where its units start.

    `cuts` are strictly increasing with `0 < cut < len(text)`; `sentences` holds where sentences start: 0 first (for a
    text that is not empty), then a subset of the cuts. `segmenter` names what cut this row. Units are the slices
    between cuts, so joining them always gives the text back. The white space between two units belongs to the later
    one. For the counts alone, and never stored: `names`, the (start, end) offsets of the names that the segmenter saw
    (None: it looks for none), and `fallback`, why another segmenter than the one asked for cut this row.
    """

    id: str
    text: str
    cuts: tuple[int, ...]
    sentences: tuple[int, ...]
    segmenter: str
    completion_start: int | None = None
    names: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)
    fallback: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse cuts that do not partition the text."""
        bounds = (0, *self.cuts, len(self.text))
        if self.text and any(left >= right for left, right in pairwise(bounds)):
            raise ValueError(f"record {self.id!r}: cuts {self.cuts} do not partition {len(self.text)} characters")
        if self.text and (self.sentences[:1] != (0,) or not set(self.sentences[1:]) <= set(self.cuts)):
            raise ValueError(f"record {self.id!r}: sentences {self.sentences} must be 0, then cuts out of {self.cuts}")
        if list(self.sentences) != sorted(set(self.sentences)):
            raise ValueError(f"record {self.id!r}: sentences {self.sentences} are not strictly increasing")

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the (start, end) character offsets of every unit."""
        return tuple(pairwise((0, *self.cuts, len(self.text))))

    @property
    def units(self) -> tuple[str, ...]:
        """Return the units as text; `"".join(units) == text`."""
        return tuple(self.text[start:end] for start, end in self.spans)


class Piece(NamedTuple):
    """A slice of a permuted text: its bounds, and the start of what it copies (None: nothing, as a delimiter)."""

    start: int
    end: int
    source: int | None


@dataclass(frozen=True, slots=True)
class TokenOrder:
    """How the tokens of a text move once it is encoded: in windows of whole sentences, as units do.

    `sentences` are the character offsets where sentences start; equal seeds move equal tokens alike.
    """

    order: str
    seed: int
    sentences: tuple[int, ...]
    max_units: int
    delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class Ordering:
    """The units of one record in the order drawn for one epoch.

    `order` is what `permutation` is, not what was asked for: one unit drawn as `reversed` is `original`. `pieces`
    partition `text` and say where each slice stood in the segmentation. Where `tokens` is given, the text is the
    original one, and its tokens take their places in the encoder. `context` stands before the text: it is read, and not
    learned.
    """

    id: str
    order: str
    permutation: tuple[int, ...]
    text: str
    pieces: tuple[Piece, ...]
    completion_start: int | None = None
    tokens: TokenOrder | None = None
    context: str = ""


@dataclass(frozen=True, slots=True)
class Tag:
    """What stands before every example that is not in its original order: one token, or plain text.

    `new`: the token was added to the tokenizer for it, so that its embedding is still to be made.
    """

    token_id: int | None = None
    text: str = ""
    new: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids and the labels learned on them; a label of -100 is not learned."""

    id: str
    order: str
    input_ids: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, and every continuation that counts as right.

    Questions with one `fact_id` are not independent; `relation` is the half where a set has halves.
    """

    id: str
    fact_id: str
    direction: Direction
    prompt: str
    targets: tuple[str, ...]
    distractors: tuple[str, ...] = ()
    relation: str | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """A prompt, and continuations that would be wrong: what a model that learned too much would say.

    `kind` is `non_reciprocal` (a relation claimed the other way round) or `wrong_frame` (a known answer to a question
    about something unknown).
    """

    id: str
    fact_id: str
    kind: str
    prompt: str
    forbidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What a model made of a question.

    `metrics` maps a metric's name to its value (a metric that does not apply to the question is left out); `floors` the
    same metrics against other facts' targets, or what chance would reach.
    `logprob` is in nats, summed over the `target_tokens` tokens of the best target.
    """

    question: Question
    prediction: str
    metrics: Mapping[str, float]
    floors: Mapping[str, float]
    logprob: float
    target_tokens: int
    distractor_logprobs: tuple[float, ...] = ()


def join_texts(left: str, right: str) -> str:
    """Return a prompt and its continuation as one text.

    One space is put between two texts that would otherwise touch, except beside a script that writes no spaces
    (Han, kana, Thai and their like).
    """
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return left + right
    if writes_no_spaces(left[-1]) or writes_no_spaces(right[0]):
        return left + right
    return f"{left} {right}"


# Scripts written without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana, CJK and their punctuation.
_SPACELESS = (
    (0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x312F), (0x31A0, 0x4DBF), (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF), (0xFF00, 0xFFEF), (0x20000, 0x3FFFF),
)  # fmt: skip


def writes_no_spaces(character: str) -> bool:
    """Return whether the character's script puts no white space between words."""
    code = ord(character)
    return code >= _SPACELESS[0][0] and any(low <= code <= high for low, high in _SPACELESS)
