"""The `permute` section: in which orders the units of a record are learned."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from spt.config.values import NonNegative, PositiveInt, Section, Text

Order = Literal["original", "reversed", "shuffled", "rotated", "fim"]


def _some_weight(orders: dict[Order, float]) -> dict[Order, float]:
    if not 0 < sum(orders.values()) < float("inf"):
        raise ValueError("the weights need a finite sum above 0")
    return orders


Orders = Annotated[dict[Order, NonNegative], AfterValidator(_some_weight)]


class Phase(Section):
    """From an epoch on (the first is 0), other orders."""

    epoch: PositiveInt
    orders: Orders


class Permute(Section):
    """Which orders the units are learned in. `orders` holds weights; they need not sum to one.

    `curriculum` holds the orders of later epochs, each phase until the next. `fim_sentinels` stand before prefix,
    suffix and middle in the order `fim`: plain text, or tokens of the tokenizer.
    """

    orders: Orders = Field(default={"original": 1.0})
    curriculum: tuple[Phase, ...] = ()
    max_units: PositiveInt = 32
    delimiter: Text | None = None
    order_tag: Text | None = None
    fim_sentinels: tuple[Text, Text, Text] = ("<PRE>", "<SUF>", "<MID>")

    @property
    def signs(self) -> tuple[str, ...]:
        """Return what is written between units and is no text."""
        delimiter = (self.delimiter or "").strip()
        return (*([delimiter] if delimiter else ()), *(self.fim_sentinels if "fim" in self.all_orders else ()))

    @property
    def all_orders(self) -> frozenset[Order]:
        """Return the orders that are drawn in some epoch."""
        phases = (self.orders, *(phase.orders for phase in self.curriculum))
        return frozenset(order for orders in phases for order, weight in orders.items() if weight > 0)

    def orders_in(self, epoch: int) -> Mapping[Order, float]:
        """Return the weights of an epoch, the first of which is 0."""
        begun = [phase.orders for phase in self.curriculum if phase.epoch <= epoch]
        return begun[-1] if begun else self.orders

    @model_validator(mode="after")
    def _rising_epochs(self) -> Self:
        if any(later.epoch <= phase.epoch for phase, later in pairwise(self.curriculum)):
            raise ValueError(f"curriculum: epochs {[p.epoch for p in self.curriculum]} must rise from phase to phase")
        return self

    @model_validator(mode="after")
    def _visible_sentinels(self) -> Self:
        if len({sign.strip() for sign in self.fim_sentinels} - {""}) < len(self.fim_sentinels):
            raise ValueError("fim_sentinels: must be three different visible signs, such as [<PRE>, <SUF>, <MID>]")
        return self
