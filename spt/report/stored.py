"""The files of a run's folder → JSON values of the right shape, or an error that names the file and the remedy.

In: paths, and a model of the shape. Out: the values as they stand there. Trade-off: only what a report reads is
checked, so that runs of older and newer formats load; what a file says beyond its model passes through.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    InstanceOf,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from spt.errors import DamagedError

# A lone surrogate, which JSON can bring in, is no string to pydantic; here it passes, and is shown by its picture.
Text = InstanceOf[str]
# What no run ever wrote, and no drawing can hold.
Number = Annotated[FiniteFloat, Field(ge=-1e100, le=1e100)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Figure(_Part):
    value: Number | None
    low: Number | None = None
    high: Number | None = None
    floor: Number | None = None
    unit: Text | None = None
    p_value: Number | None = None
    n: Count | None = None
    n_facts: Count | None = None


class _Direction(_Part):
    n_questions: Count
    n_facts: Count
    __pydantic_extra__: dict[str, _Figure | None]


class _Relation(_Part):
    forward: _Direction | None = None
    reversed: _Direction | None = None


class _Guard(_Figure):
    label: Text | None = None
    rule: Text | None = None
    reason: Text | None = None
    unanswered: dict[Any, Count] | None = None
    examples: list[Any] | None = None

    @model_validator(mode="after")
    def _figures_beside(self) -> Self:
        for part in (self.__pydantic_extra__ or {}).values():
            if isinstance(part, dict) and "value" in part:
                _Figure.model_validate(part)
        return self


class _Fluency(_Part):
    natural_order: _Figure | None = None
    rule: Text | None = None
    samples: list[Text] = []


class _Perplexity(_Part):
    before: Number | None
    after: Number | None
    n_tokens: Count
    text: Text


class Summary(_Part):
    """`evaluate/summary.json`."""

    name: Text
    headline: Text
    match_rules: dict[Any, Text]
    forward: _Direction | None
    reversed: _Direction | None
    model: Text | None = None
    gap: dict[Any, _Figure | None] | None = None
    relations: dict[Any, _Relation] | None = None
    fluency: _Fluency | None = None
    perplexity: _Perplexity | None = None
    guards: dict[Any, _Guard | None] | None = None
    unanswered: dict[Any, Count] | None = None
    no_log_probabilities: Text | None = None


class Row(_Part):
    """A line of `evaluate/scores.jsonl`, but for its metrics."""

    id: Text
    fact_id: Text
    direction: Literal["forward", "reversed"]
    prompt: Text
    targets: list[Text]
    prediction: Text
    distractors: list[Text] = []
    relation: Text | None = None
    target_tokens: Count | None = None
    distractor_logprobs: list[Number] = []


class Part(_Part):
    """A line of `evaluate/parts.jsonl`."""

    figure: Text
    part: Text
    total: Number
    count: Number


class Line(_Part):
    """A line of `train/metrics.jsonl`."""

    step: Count
    tokens: Count | None = None
    loss: Number | None = None
    evaluate: dict[Any, dict[Any, Number | None] | None] | None = None
    throughput: dict[Any, Number | None] | None = None


class Trained(_Part):
    """`train/manifest.json`."""

    steps: Count | None = None
    tokens: Count | None = None
    target_tokens: Count | None = None


class Timings(_Part):
    """`timings.json` of a stage."""

    seconds: Number | None = None


class Evaluated(_Part):
    """`evaluate/manifest.json`."""

    questions: Count | None = None


NUMBERS = TypeAdapter(dict[str, Number | None], config=ConfigDict(strict=True))


def read_object(path: Path, shape: type[BaseModel], remedy: str) -> dict[str, Any]:
    """Return the JSON object of a file, which is as `shape` says.

    Raises DamagedError, with the remedy.
    """
    return _checked(_decode(_bytes(path, remedy), str(path), remedy), shape, str(path), remedy)


def read_lines(path: Path, shape: type[BaseModel], remedy: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line that is not empty as `path:line` and its JSON object, one in memory at a time.

    Raises DamagedError, with the remedy.
    """
    try:
        # In bytes: JSON may hold U+2028 and its like unescaped, and those are no line ends.
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    place = f"{path}:{number}"
                    yield place, _checked(_decode(line, place, remedy), shape, place, remedy)
    except OSError as error:
        raise DamagedError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None


def check_numbers(values: dict[str, Any], place: str, remedy: str) -> dict[str, float]:
    """Return the values, which are finite numbers; those that are null are left out."""
    try:
        return {name: value for name, value in NUMBERS.validate_python(values).items() if value is not None}
    except ValidationError as error:
        raise DamagedError(f"{place}: {_first(error)}; {remedy}") from None


def _bytes(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None


def _decode(data: bytes, place: str, remedy: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{place}: cannot be read as JSON ({error}); {remedy}") from None


def _checked(value: Any, shape: type[BaseModel], place: str, remedy: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DamagedError(f"{place}: holds no JSON object; {remedy}")
    missing = sorted(name for name, field in shape.model_fields.items() if field.is_required() and name not in value)
    if missing:
        raise DamagedError(f"{place}: lacks {', '.join(missing)}; {remedy}")
    try:
        shape.model_validate(value)
    except ValidationError as error:
        raise DamagedError(f"{place}: {_first(error)}; {remedy}") from None
    return value


def _first(error: ValidationError) -> str:
    # Branches of a union are no part of the path that a reader of the file sees, and only the first matters to him.
    problem = error.errors(include_url=False, include_context=False)[0]
    found = json.dumps(problem["input"], default=str)
    return f"{'.'.join(map(str, problem['loc']))} is {found[:60]}: {problem['msg'][0].lower()}{problem['msg'][1:]}"
