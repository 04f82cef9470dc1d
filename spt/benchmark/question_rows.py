"""One row of a question file → a Question, or what is wrong with it.

In: rows, whatever the format. Out: questions and problems, each with its place. Trade-off: a row is checked whole
before anything is made of it, so that one reading of a file names all of its problems.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spt.benchmark.question_table import QuestionTable
from spt.config.explain import nearest
from spt.config.questions import QuestionField
from spt.corpus import Row
from spt.corpus.seen import SeenIds
from spt.errors import CorpusError, QuestionError
from spt.progress import say
from spt.records import DIRECTIONS, Direction, Question

FIELDS = ("id", "fact_id", "direction", "prompt", "targets", "distractors", "relation")
KEEP = "keep"
_YES = ("true", "yes", "y", "1", "x")
_NO = ("false", "no", "n", "0", "")
_SHOWN = 10


class Reader:
    """Questions and problems, as rows come in; `left_out` counts those that the column `keep` leaves out.

    `fields` says which column holds what, where it is not called so; `direction` is that of rows that have none.
    """

    def __init__(self, fields: Mapping[QuestionField, str], seen: SeenIds) -> None:
        self.questions = QuestionTable()
        self.problems: list[str] = []
        self.left_out = 0
        self._fields, self._seen = fields, seen
        self._columns = set(fields.values())

    def reject(self, error: CorpusError) -> None:
        """Note a row that is none."""
        self.problems.append(str(error))

    def add(self, row: Row, direction: Direction | None = None) -> None:
        """Note a question, or what is wrong with its row."""
        place = f"{row.source}:{row.line}"
        keep = _keep(row.values.get(KEEP, True))
        if keep is False:
            self.left_out += 1
            return
        row, absent = self._named(row, direction)
        problems = absent or [*self._misspelt(row.values), *_problems(row)]
        if keep is None:
            problems = [f"{KEEP} {row.values[KEEP]!r} is neither yes nor no; write one of them", *problems]
        if problems:
            self.problems += [f"{place}: {problem}" for problem in problems]
            return
        question = _question(row)
        first = self._seen.add(question.id, row.source, row.line)
        if first is not None:
            where = f"{first[0]}:{first[1]}"
            self.problems.append(f"{place}: id {question.id!r} was given in {where}; every question needs its own")
        self.questions.append(question)

    def check(self, place: str | Path) -> None:
        """Raise what was noted, or say what was left out."""
        if self.problems:
            more = len(self.problems) - _SHOWN
            listed = "\n  ".join([*self.problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])
            raise QuestionError(f"{place}: questions that cannot be used:\n  {listed}")
        if not self.questions and self.left_out:
            raise QuestionError(
                f"{place}: of {self.left_out} rows none is kept; write yes into the column {KEEP} of those to ask"
            )
        if not self.questions:
            raise QuestionError(f"{place}: holds no question; one row needs {', '.join(FIELDS[2:5])}")
        if self.left_out:
            say(f"{place}: {self.left_out:,} rows left out by the column {KEEP}, {len(self.questions):,} kept")

    def _named(self, row: Row, direction: Direction | None) -> tuple[Row, list[str]]:
        """Return a row whose fields have our names, and those that it should have but has not."""
        values, named = dict(row.values), {**self._fields}
        absent = [column for column in named.values() if column not in values]
        if values.get("targets") is None and "targets" not in named and "completion" in values:
            named["targets"] = "completion"  # as in the files of Berglund et al.
            self._columns.add("completion")
        values |= {name: values.get(column) for name, column in named.items()}
        if isinstance(values.get("targets"), str) and named.get("targets") and not _is_table(row):
            values["targets"] = [values["targets"]]
        if direction is not None and values.get("direction") is None:
            values["direction"] = direction
        found = ", ".join(row.values)
        problems = [f"no field {column}, which data.questions.fields names; fields found: {found}" for column in absent]
        return row._replace(values=values), problems

    def _misspelt(self, values: Mapping[str, Any]) -> list[str]:
        """Return the unknown columns that are near a known one the row lacks, each once a file."""
        known = (*FIELDS, KEEP)
        unknown = [name for name in values if name not in known and name not in self._columns]
        self._columns.update(unknown)
        absent = [name for name in known if name not in values]
        near = ((name, difflib.get_close_matches(name.lower(), absent, n=1, cutoff=0.8)) for name in unknown)
        return [f"unknown column {name!r}. Did you mean {match[0]}?" for name, match in near if match]


def _keep(value: Any) -> bool | None:
    """Return whether a row is kept; None for a value that does not say."""
    text = "" if value is None else str(value).strip().lower()
    return True if text in _YES else False if text in _NO else None


def _question(row: Row) -> Question:
    values = row.values
    label = _label(values, "id") or row.place
    return Question(
        id=label,
        fact_id=_label(values, "fact_id") or label,
        direction=values["direction"],
        prompt=values["prompt"],
        targets=tuple(_texts(row, "targets")),
        distractors=tuple(_texts(row, "distractors")),
        relation=_label(values, "relation"),
    )


def _label(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return None if value in (None, "") else str(value)


def _is_table(row: Row) -> bool:
    return re.search(r"\.[ct]sv(\.\w+)?$", row.source) is not None


def _texts(row: Row, name: str) -> Any:
    """Return the list in a field; a cell of a table holds one text, or several joined by `|`."""
    value = row.values.get(name)
    if value == "":
        return []
    if isinstance(value, str) and _is_table(row):
        return [part.strip() for part in value.split("|")]
    return [] if value is None else value


def _problems(row: Row) -> list[str]:
    values = row.values
    problems = [
        f"{name} is missing; fields found: {', '.join(values)}"
        for name in ("direction", "prompt", "targets")
        if values.get(name) is None
    ]
    problems += [
        f"{name} {values[name]!r} is neither text nor a whole number"
        for name in ("id", "fact_id", "relation")
        if not isinstance(values.get(name, ""), str | int | None) or isinstance(values.get(name), bool)
    ]
    prompt = values.get("prompt")
    if prompt is not None and not (isinstance(prompt, str) and prompt.strip()):
        problems.append(f"prompt {prompt!r} must be text that is not blank; write what the model continues")
    return problems + _direction_problems(values.get("direction")) + _list_problems(row)


def _direction_problems(value: Any) -> list[str]:
    if value is None or value in DIRECTIONS:
        return []
    return [f"direction {value!r} is neither {' nor '.join(DIRECTIONS)}.{nearest(str(value), DIRECTIONS)}"]


def _list_problems(row: Row) -> list[str]:
    problems = []
    for name in ("targets", "distractors"):
        texts = _texts(row, name)
        if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
            problems.append(f'{name} {row.values[name]!r} must be a list of texts, none blank, such as ["Ada"]')
        elif name == "targets" and not texts and row.values.get(name) is not None:
            problems.append(f"targets {row.values[name]!r} is empty; give at least one right answer")
    if not problems:
        targets = _texts(row, "targets")
        both = [text for text in _texts(row, "distractors") if text in targets]
        problems += [f"{both[0]!r} is a target and a distractor; leave it in one of the lists"] if both else []
    return problems
