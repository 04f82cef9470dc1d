"""The `permute` section: in which orders the units of a record are learned."""

from typing import Literal, Self

from pydantic import Field, model_validator

from spt.config.values import NonNegative, PositiveInt, Section, Text

Order = Literal["original", "reversed", "shuffled", "rotated", "fim"]


class Permute(Section):
    """Which orders the units are learned in. `orders` holds weights; they need not sum to one.

    `fim_sentinels` stand before prefix, suffix and middle in the order `fim`: plain text, or tokens of the tokenizer.
    """

    orders: dict[Order, NonNegative] = Field(default={"original": 1.0})
    max_units: PositiveInt = 32
    delimiter: Text | None = None
    order_tag: Text | None = None
    fim_sentinels: tuple[Text, Text, Text] = ("<PRE>", "<SUF>", "<MID>")

    @property
    def signs(self) -> tuple[str, ...]:
        """Return what is written between units and is no text."""
        delimiter = (self.delimiter or "").strip()
        return (*([delimiter] if delimiter else ()), *(self.fim_sentinels if self.orders.get("fim") else ()))

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if not 0 < sum(self.orders.values()) < float("inf"):
            raise ValueError("orders: the weights need a finite sum above 0")
        return self

    @model_validator(mode="after")
    def _visible_sentinels(self) -> Self:
        if len({sign.strip() for sign in self.fim_sentinels} - {""}) < len(self.fim_sentinels):
            raise ValueError("fim_sentinels: must be three different visible signs, such as [<PRE>, <SUF>, <MID>]")
        return self
