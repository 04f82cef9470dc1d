"""The `augment` section: what is learned besides the records as they are, one mapping with one key an entry.

    augment: [{repeat: {times: 2}}, {identity_bridge: {}}, {masked_context: {}}]

`repeat`, `sentences`, `identity_bridge` and `reverse_statements` make more records, which are cut and stored with the
others; `masked_context` is drawn anew each epoch. Trade-off: entries do not build on each other: each makes its records
from those of the corpus, so that their order means nothing.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_serializer, model_validator

from spt.config.assistant import Assistant
from spt.config.values import Number, OneOrMore, PositiveInt, Section, Text

SLOT = re.compile(r"\{(\w+)\}")
"""A field of a record in a template."""

Share = Annotated[float, Number, Field(ge=0, le=1)]


class MaskedContext(Section):
    """Before a sentence stands the sentence itself with masked words, which is read and not learned.

    Each word is masked with a rate drawn from U(`low`, `high`) for each example; a share `probability` of examples has
    such a context.
    """

    stored: ClassVar[bool] = False
    low: Share = 0.05
    high: Share = 0.95
    probability: Share = 1.0
    mask: Text = "[MASK]"
    separator: Text = "[SEP]"

    @model_validator(mode="after")
    def _some_range(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}; exchange them")
        if not (self.mask.strip() and self.separator.strip()):
            raise ValueError('mask and separator must be visible, such as "[MASK]" and "[SEP]"')
        return self


class Repeat(Section):
    """Each record is learned `times` an epoch, or as often as its column `column` says (a whole number from 1)."""

    stored: ClassVar[bool] = True
    times: PositiveInt | None = None
    column: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.times is None) == (self.column is None):
            raise ValueError("give either times (a number) or column (whose values are numbers)")
        return self


class Sentences(Section):
    """Each sentence of a record of several is learned alone beside it, `repeat` times an epoch.

    The spaCy `pipeline` says where sentences end. One in which a personal pronoun stands before any name says nothing
    alone, and is left out.
    """

    stored: ClassVar[bool] = True
    pipeline: Text = "en_core_web_sm"
    repeat: PositiveInt = 1


class Statements(Section):
    """Sentences made from a record's fields: `templates` with `{field}`.

    A field is the column of that name, or of those that `fields` gives the first that a record has, or what stands for
    it in the first of `patterns` (templates too) that the whole text fits. A record may state several facts: its column
    `facts` then holds a list of them, each with fields of its own. Where none of these gives what is needed, the
    assistant `extract` is asked for the facts of the text, as subject, relation and object. Each sentence is learned
    `repeat` times an epoch.
    """

    stored: ClassVar[bool] = True
    templates: tuple[Text, ...]
    fields: dict[str, OneOrMore] = Field(default={})
    patterns: tuple[Text, ...] = ()
    facts: Text = "facts"
    extract: Assistant | None = None
    repeat: PositiveInt = 1

    @model_validator(mode="after")
    def _with_slots(self) -> Self:
        for text in (*self.templates, *self.patterns):
            if not SLOT.search(text):
                raise ValueError(f"{text!r} names no field, such as {{subject}}")
        return self


class IdentityBridge(Statements):
    """Sentences that say of a thing that it is itself; of equal ones, one is made for the whole corpus."""

    templates: Annotated[tuple[Text, ...], Field(min_length=1)] = ("The name of {subject} is {subject}.",)


class ReverseStatements(Statements):
    """Each fact stated the other way round, so that the names in the two fields of `between` change places.

    By the fact's own template in `template_column`, or where it has none by every one of `templates` in which they do;
    or by an `assistant`.
    """

    templates: tuple[Text, ...] = ()
    template_column: Text | None = None
    assistant: Assistant | None = None
    between: tuple[Text, Text] = ("subject", "object")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        by_template = bool(self.templates) or self.template_column is not None
        if by_template == (self.assistant is not None):
            raise ValueError("give one of templates, template_column and assistant, or templates and template_column")
        if self.between[0] == self.between[1]:
            raise ValueError(f"between: {self.between[0]!r} stands there twice; give two fields that change places")
        for text in self.templates:
            if not set(self.between) <= set(SLOT.findall(text)):
                raise ValueError(f"templates: {text!r} must hold both {{{self.between[0]}}} and {{{self.between[1]}}}")
        return self


class Augment(Section):
    """One entry: the augmenter that is given."""

    masked_context: MaskedContext | None = None
    repeat: Repeat | None = None
    identity_bridge: IdentityBridge | None = None
    reverse_statements: ReverseStatements | None = None
    sentences: Sentences | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self._given) != 1:
            raise ValueError(
                f"each entry has one key out of {', '.join(type(self).model_fields)}, such as {{name: {{}}}}"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_others(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {name: values for name, values in dump(self).items() if values is not None}

    @property
    def _given(self) -> list[str]:
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    @property
    def name(self) -> str:
        """Return the key of the entry."""
        return self._given[0]

    @property
    def settings(self) -> Any:
        """Return what stands under the key."""
        return getattr(self, self.name)

    @property
    def signs(self) -> tuple[str, ...]:
        """Return what the entry writes that is no text."""
        context = self.masked_context
        return () if context is None else (context.mask.strip(), context.separator.strip())

    @property
    def stored(self) -> bool:
        """Return whether it makes records that are stored, and not something that is drawn anew each epoch."""
        return bool(self.settings.stored)

    @property
    def asks(self) -> bool:
        """Return whether a language model says what it adds."""
        return any(getattr(self.settings, key, None) is not None for key in ("assistant", "extract"))
