"""The kinds of value an experiment file holds, stricter and plainer than Python's own.

In: what YAML made of a value. Out: the value, or an error in words. Trade-off: nothing is guessed between text and
numbers where that could lose something: `true` is no number, and a number becomes text only if it is whole (`name: 7`).
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Section(BaseModel):
    """A part of the experiment file: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, str)):
        kind = "true or false" if isinstance(value, bool) else "text"
        raise ValueError(f"must be a number, not {kind}; write it without quotes, such as 2e-5 or 16")
    return value


def _text(value: Any) -> Any:
    if isinstance(value, float):
        # 1e10 may have been meant as ten billion or as a name; Python would write 10000000000.0.
        raise ValueError("must be text, not a number; put it in quotes")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _one_or_more(value: Any) -> Any:
    parts = value if isinstance(value, (list, tuple)) else [value]
    whole = all(isinstance(part, (str, int)) and not isinstance(part, bool) and part != "" for part in parts)
    if not parts or not whole:
        raise ValueError("must be a text or a list of texts, none of them empty")
    texts = tuple(map(str, parts))
    return texts if parts is value else texts[0]


Number = BeforeValidator(_number)

Integer = Annotated[int, Number, Field(ge=0)]
PositiveInt = Annotated[int, Number, Field(gt=0)]
Positive = Annotated[float, Number, Field(gt=0)]
NonNegative = Annotated[float, Number, Field(ge=0)]
Fraction = Annotated[float, Number, Field(ge=0, lt=1)]
Text = Annotated[str, BeforeValidator(_text)]
OneOrMore = Annotated[str | tuple[str, ...], BeforeValidator(_one_or_more)]
