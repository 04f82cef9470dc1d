"""The context drawn before a text: the text itself with masked words, for the model to read and then restore.

    [MASK] Lee [MASK] The [MASK] [SEP] Ann Lee directed The Sea.
    ------- read, not learned ------- ------- learned -------

In: an ordering and a generator. Out: the ordering with a context. Trade-off: words are what white space parts, so in a
script without spaces a whole sentence is one word.
"""

import re
from dataclasses import replace
from random import Random

from spt.config.augment import MaskedContext
from spt.records import Ordering

_WORD = re.compile(r"\S+")


def masked_context(ordering: Ordering, settings: MaskedContext, generator: Random) -> Ordering:
    """Return an ordering with its text, words masked, as a context; or as it was, by `probability`.

    The rate of masking is drawn for each example. The context is not learned: it is the condition under which the text
    is restored, and a model that learned it would learn to write masks. Source: masked fine-tuning of Closing the
    Data-Efficiency Gap (2510.09885); the rates, and `[SEP]` in place of that paper's instruction, are the design's.
    """
    if generator.random() >= settings.probability:
        return ordering
    rate = generator.uniform(settings.low, settings.high)
    masked = _WORD.sub(lambda word: settings.mask if generator.random() < rate else word[0], ordering.text)
    context = f"{masked.strip()} {settings.separator.strip()} "
    return replace(ordering, context=ordering.context + context)
