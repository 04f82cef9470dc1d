"""The `segment` section: which segmenter cuts sentences into units, and its keys.

Each segmenter uses some of the keys; the others must keep their defaults, so that none is set in vain. Trade-off: a
default given in so many words passes, because a saved experiment spells every default out.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import model_validator

from spt.config.assistant import Assistant
from spt.config.values import PositiveInt, Section, Text

_USED_BY: Mapping[str, tuple[str, ...]] = {
    "spacy": ("pipeline", "fast", "processes"),
    "word": ("processes",),
    "sentence": ("pipeline", "processes"),
    "token": ("processes",),
    "ngram": ("n", "processes"),
    "entity": ("pipeline", "processes"),
    "mentions": ("pipeline", "labels", "names_column", "processes"),
    "random": ("max_words", "processes"),
    "assistant": ("pipeline", "assistant"),
    "hybrid": ("pipeline", "assistant"),
}
"""The keys that each segmenter uses."""

_UNSTORED = ("processes", "max_words", "assistant")
"""Keys that change nothing in the segmented data, or that the segmenter's own key says better."""


class Segment(Section):
    """How sentences are cut into units.

    `fast`: without named entities. `n`: words in a unit (ngram). `labels`, `names_column`: whose names are units
    (mentions). `max_words`: words in a unit at most (random). `processes`: how many cut at the same time.
    `assistant`: the language model that is asked (assistant, hybrid).
    """

    segmenter: Literal[
        "spacy", "word", "sentence", "token", "ngram", "entity", "mentions", "random", "assistant", "hybrid"
    ] = "spacy"
    pipeline: Text = "en_core_web_sm"
    fast: bool = False
    n: PositiveInt = 3
    labels: tuple[Text, ...] = ("PERSON",)
    names_column: Text | None = None
    max_words: PositiveInt = 10
    processes: PositiveInt = 1
    assistant: Assistant | None = None

    @model_validator(mode="after")
    def _every_key_used(self) -> Self:
        used = _USED_BY[self.segmenter]
        for key, field in type(self).model_fields.items():
            # An assistant may stand ready in an experiment whose method does without.
            if key not in ("segmenter", "assistant") and key not in used and getattr(self, key) != field.get_default():
                users = ", ".join(name for name, keys in _USED_BY.items() if key in keys)
                raise ValueError(f"{key}: only {users} uses it, not {self.segmenter}; remove it")
        return self

    @model_validator(mode="after")
    def _some_names(self) -> Self:
        if not self.labels and self.names_column is None:
            raise ValueError("labels is empty and names_column is not given, so no name would be found; give one")
        return self

    @property
    def stored(self) -> dict[str, Any]:
        """Return what the segmented data depends on: the segmenter, and the keys it uses when it cuts."""
        return {"segmenter": self.segmenter, **self._used(lambda key: key not in _UNSTORED)}

    @property
    def drawn(self) -> dict[str, Any]:
        """Return what is used anew each epoch, and so decides what is learned from stored data."""
        return self._used(lambda key: key == "max_words")

    def _used(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        values = self.model_dump(mode="json")
        return {key: values[key] for key in _USED_BY[self.segmenter] if wanted(key)}
