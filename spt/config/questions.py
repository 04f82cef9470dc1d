"""The section `data.questions`: which files hold what is asked, and how their rows are read.

Trade-off: a direction belongs to a row or to its file, so that public files are read as published, without a copy.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from spt.config.values import OneOrMore, Section, Text
from spt.records import Direction

QuestionField = Literal["id", "fact_id", "direction", "prompt", "targets", "distractors", "relation"]


class Questions(Section):
    """A question set: a JSON Lines file (CSV, TSV and the other formats of a corpus work too).

    `path`: rows that say their own direction. `forward`, `reversed`: files whose rows ask that way, such as Berglund's.
    `fields` names the columns that are called otherwise, such as {targets: completion}.
    """

    path: Text | None = None
    forward: OneOrMore | None = None
    reversed: OneOrMore | None = None
    fields: dict[QuestionField, Text] = Field(default={})

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.forward is None and self.reversed is None):
            raise ValueError(
                "give either path (rows with a direction), or forward and reversed (files that ask one way)"
            )
        return self

    @property
    def files(self) -> tuple[tuple[str, Direction | None], ...]:
        """Return each file with the direction of its rows; None where they say it themselves."""
        named: tuple[tuple[OneOrMore | None, Direction | None], ...]
        named = ((self.path, None), (self.forward, "forward"), (self.reversed, "reversed"))
        return tuple(
            (path, direction)
            for given, direction in named
            for path in ((given,) if isinstance(given, str) else given or ())
        )

    @property
    def place(self) -> str:
        """Return the first file: what is said of the set lies beside it."""
        return self.files[0][0]
