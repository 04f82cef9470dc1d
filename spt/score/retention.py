"""Has the model forgotten the rest of the language? Its perplexity on neutral text, before and after training.

In: a file of the user's, or the forty sentences that come with spt, and the two models. Out: the guard's figure, and
what `summary["perplexity"]` holds. Trade-off: forty sentences show a large change, not a small one.
"""

from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from spt.errors import InputError
from spt.score.finding import Finding, Part, finding, not_measured
from spt.statistics.bootstrap import exponential, exponentials, intervals
from spt.statistics.facts import FactTotals

Nats = Sequence[tuple[float, int]]
"""Log-probability in nats and number of tokens, a text."""

LABEL = "retention of neutral text"
RULE = "perplexity of neutral text after training / before, over its tokens: 1 is none forgotten, more is worse"


def neutral_texts(path: str | None) -> list[str]:
    """Return the lines of a file that hold text, or those that come with spt.

    Raises InputError for a file that cannot be read or holds none.
    """
    if path is not None and Path(path).exists() and not Path(path).is_file():
        raise InputError(f"evaluate.neutral_text: {path} is a folder, pipe or device; save its text to a file")
    own = resources.files("spt.score").joinpath("neutral", "neutral.txt")
    try:
        text = Path(path).read_text(encoding="utf-8-sig") if path is not None else own.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"evaluate.neutral_text: {path} cannot be read ({error}); give a UTF-8 text file") from None
    texts = [line for line in text.splitlines() if line.strip()]
    if not texts:
        raise InputError(f"evaluate.neutral_text: {path} holds no text; give lines of ordinary prose, or leave it out")
    return texts


def retention(before: Nats | None, after: Nats) -> Finding:
    """Return the guard's figure; without a model before, only why there is none."""
    if before is None:
        return not_measured(LABEL, RULE, "there is no model before training to compare with", unit="ratio")
    lost = [(then - now, tokens) for (then, _), (now, tokens) in zip(before, after, strict=True)]
    figure = ratio(*zip(*lost, strict=True))
    return finding(LABEL, RULE, **figure, n=len(after), unit="ratio", parts=parts_of(lost))


def perplexities(before: Nats | None, after: Nats, path: str | None) -> dict[str, Any]:
    """Return both perplexities, the predicted tokens they are over, and what text that was."""
    text = path if path is not None else "forty everyday sentences that come with spt"
    known = None if before is None else perplexity_of(before)
    return {
        "before": known, "after": perplexity_of(after), "n_tokens": sum(tokens for _, tokens in after), "text": text,
        "parts": parts_of([(-value, tokens) for value, tokens in after]),
    }  # fmt: skip


def parts_of(nats: Nats) -> list[Part]:
    """Return each text with its nats and its tokens."""
    return [(str(number), lost, float(tokens)) for number, (lost, tokens) in enumerate(nats) if tokens]


def perplexity_of(nats: Nats) -> float:
    """Return exp of all nats over all tokens."""
    return exponential(-sum(value for value, _ in nats) / max(sum(tokens for _, tokens in nats), 1))


def ratio(nats: Sequence[float], tokens: Sequence[float]) -> dict[str, Any]:
    """Return exp of nats lost a token, with a percentile bootstrap interval over texts (None: it has no width)."""
    # Of a text without tokens there are none to lose.
    counted = [(lost, count) for lost, count in zip(nats, tokens, strict=True) if count]
    sums, counts = np.array(counted, dtype=np.float64).T
    texts = tuple(map(str, range(len(counted))))
    (interval,) = intervals([FactTotals(texts, sums, counts)], [(-np.inf, np.inf)])
    return exponentials(asdict(interval))
