"""Log-probabilities → the threshold of mode `score`.

In: what the model gave for the prompt's calibration sentences, and how many words a unit shall have on average. Out:
the threshold that gives just that on those sentences. It depends on model and prompt alone, so that no shard depends on
another. Trade-off: text unlike those sentences gets units somewhat longer or shorter than asked for.
"""

from collections.abc import Sequence


def find_threshold(scored: Sequence[tuple[int, Sequence[float]]], words_per_unit: float) -> float:
    """Return a threshold (nats) above which the separators are as many as `words_per_unit` asks for.

    `scored` holds, for each sentence, its number of words and the separator's log-probability at each boundary.
    """
    words = sum(count for count, _ in scored)
    ordered = sorted((value for _, values in scored for value in values), reverse=True)
    # Every sentence starts a unit without a separator.
    wanted = round(words / words_per_unit) - len(scored)
    if wanted <= 0:
        return 0.0
    if wanted >= len(ordered):
        return ordered[-1] - 1.0 if ordered else 0.0
    return (ordered[wanted - 1] + ordered[wanted]) / 2
