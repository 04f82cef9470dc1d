"""When a prediction counts as right: pure functions of two strings.

In: a prediction and the targets of its question. Out: 1.0 or 0.0 a metric. Trade-off: three plain rules that can be
stated in a line each and are printed with every number, rather than one clever rule that nobody can check by eye.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

Metric = Callable[[str, str], bool]

# Every white space of Unicode lies below U+3001.
_SPACE = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
_QUOTES = "\"'`´‘’‚‛“”„‟«»‹›「」『』"
_PUNCTUATION = ".,;:!?…。、，．；：！？।؟،؛"


def trim(text: str) -> str:
    """Return the text in NFC, without white space, sentence punctuation and quotes at either end."""
    return unicodedata.normalize("NFC", text).strip(_SPACE + _QUOTES + _PUNCTUATION)


def fold(text: str) -> str:
    """Return the text in NFC with case folded, so that equal means equal but for case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def exact(prediction: str, target: str) -> bool:
    """Return whether the whole prediction is the target, both trimmed, case kept."""
    wanted = trim(target)
    return bool(wanted) and trim(prediction) == wanted


def startswith(prediction: str, target: str) -> bool:
    """Return whether the prediction starts with the target, but for case and white space around it.

    Source: the evaluation of Berglund et al. (2309.12288).
    """
    wanted = fold(target.strip())
    return bool(wanted) and fold(prediction.lstrip()).startswith(wanted)


def contains(prediction: str, target: str) -> bool:
    """Return whether the trimmed target stands anywhere in the prediction, but for case."""
    wanted = fold(trim(target))
    return bool(wanted) and wanted in fold(prediction)


METRICS: Mapping[str, Metric] = MappingProxyType({"exact": exact, "startswith": startswith, "contains": contains})


def measure(prediction: str, targets: Sequence[str], names: Iterable[str]) -> dict[str, float]:
    """Return the named metrics of a prediction, each the best over the targets (0.0 where there is none)."""
    return {name: float(any(METRICS[name](prediction, target) for target in targets)) for name in names}
