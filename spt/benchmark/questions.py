"""A file of questions, and what its set says of itself → QuestionSet.

In: JSON Lines (or CSV, TSV, Parquet: any format of a corpus), and `benchmark.json` beside it, where there is one.
Out: questions, every one checked, or one error that lists the bad rows. Trade-off: a set is read whole, since scoring
needs all of it.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from spt.artifact import hash_files, write_atomically
from spt.benchmark.grammar import Grammar
from spt.config import Headline
from spt.config.schema import Source
from spt.corpus import Row, read_rows
from spt.errors import CorpusError, QuestionError
from spt.records import DIRECTIONS, Question

__all__ = ["FIELDS", "Grammar", "Headline", "QuestionSet", "read_questions", "write_questions"]

FIELDS = ("id", "fact_id", "direction", "prompt", "targets", "distractors", "relation")
_SHOWN = 10


class BenchmarkFile(BaseModel):
    """What `benchmark.json` holds: the set's name, its headline metric, its grammar, and how it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    headline: Headline = "exact"
    grammar: dict[str, tuple[str, ...]] | None = None
    made_by: dict[str, Any] = {}


@dataclass(frozen=True)
class QuestionSet:
    """Questions that are scored together, in the order of their file.

    `grammar` is None where the set has no templates of its own.
    """

    name: str
    headline: Headline
    questions: tuple[Question, ...]
    grammar: Grammar | None = None


def read_questions(path: str | Path, limit: int | None = None) -> QuestionSet:
    """Return the questions of a file, the first `limit` of them if given.

    In a table (CSV, TSV) a cell of targets or distractors holds one text, or several joined by `|`. An id that is not
    given is `<file stem>:<line>`, a fact_id the id; columns that no question has are ignored.

    Raises QuestionError listing up to ten bad rows, each with file, line, value, what is allowed and the remedy;
    CorpusError where the file itself cannot be read.
    """
    path = Path(path)
    about = read_about(path)
    reader = _Reader()
    for row in read_rows(Source(path=str(path)), reader.reject):
        if limit is not None and len(reader.questions) >= limit:
            break
        reader.add(row)
    reader.check(path)
    return QuestionSet(
        about.name, about.headline, tuple(reader.questions),
        Grammar(about.grammar) if about.grammar else None,
    )  # fmt: skip


def hash_questions(path: str | Path) -> str:
    """Return a hash of a question file and of what its set says of itself.

    Raises QuestionError where it cannot be read.
    """
    path = Path(path)
    beside = path.parent / "benchmark.json"
    try:
        return hash_files([path, *([beside] if beside.exists() else [])])
    except OSError as error:
        raise QuestionError(
            f"data.questions.path: {error.filename}: {error.strerror}; `spt benchmark list` names ready question sets"
        ) from None


def read_about(path: Path) -> BenchmarkFile:
    """Return what the `benchmark.json` beside a question file says; its defaults where there is none.

    Raises QuestionError.
    """
    file = path.parent / "benchmark.json"
    if not file.exists():
        return BenchmarkFile(name=path.name.split(".")[0])
    try:
        return BenchmarkFile.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise QuestionError(f"{file}: {problems}. Allowed: {', '.join(BenchmarkFile.model_fields)}") from None


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write questions as JSON Lines, empty fields left out; reading them gives equal questions."""
    rows = ({name: getattr(question, name) for name in FIELDS} for question in questions)
    kept = ({name: value for name, value in row.items() if value not in (None, ())} for row in rows)
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))


class _Reader:
    """Questions and problems, as rows come in."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.problems: list[str] = []
        self._lines: dict[str, str] = {}
        self._columns: set[str] = set()

    def reject(self, error: CorpusError) -> None:
        """Note a row that is none."""
        self.problems.append(str(error))

    def add(self, row: Row) -> None:
        """Note a question, or what is wrong with its row."""
        place = f"{row.source}:{row.line}"
        problems = [*self._misspelt(row.values), *_problems(row)]
        if problems:
            self.problems += [f"{place}: {problem}" for problem in problems]
            return
        question = _question(row)
        first = self._lines.setdefault(question.id, place)
        if first != place:
            self.problems.append(f"{place}: id {question.id!r} was given in {first}; every question needs its own")
        self.questions.append(question)

    def check(self, path: Path) -> None:
        """Raise what was noted."""
        if self.problems:
            more = len(self.problems) - _SHOWN
            listed = "\n  ".join([*self.problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])
            raise QuestionError(f"{path}: questions that cannot be used:\n  {listed}")
        if not self.questions:
            raise QuestionError(f"{path}: holds no question; one row needs {', '.join(FIELDS[2:5])}")

    def _misspelt(self, values: Mapping[str, Any]) -> list[str]:
        """Return the unknown columns that are near a known one the row lacks, each once a file."""
        unknown = [name for name in values if name not in FIELDS and name not in self._columns]
        self._columns.update(unknown)
        absent = [name for name in FIELDS if name not in values]
        near = ((name, difflib.get_close_matches(name.lower(), absent, n=1, cutoff=0.8)) for name in unknown)
        return [f"unknown column {name!r}. Did you mean {match[0]}?" for name, match in near if match]


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


def _texts(row: Row, name: str) -> Any:
    """Return the list in a field; a cell of a table holds one text, or several joined by `|`."""
    value = row.values.get(name)
    if value == "":
        return []
    if isinstance(value, str) and re.search(r"\.[ct]sv(\.\w+)?$", row.source):
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
    near = difflib.get_close_matches(str(value).lower(), DIRECTIONS, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    return [f"direction {value!r} is neither {' nor '.join(DIRECTIONS)}.{hint}"]


def _list_problems(row: Row) -> list[str]:
    problems = []
    for name in ("targets", "distractors"):
        texts = _texts(row, name)
        if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
            problems.append(f'{name} {row.values[name]!r} must be a list of texts, none blank, such as ["Ada"]')
        elif name == "targets" and not texts and row.values.get(name) is not None:
            problems.append(f"targets {row.values[name]!r} is empty; give at least one right answer")
    return problems
