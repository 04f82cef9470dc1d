"""A file of questions, and what its set says of itself → QuestionSet.

In: JSON Lines (or CSV, TSV, Parquet: any format of a corpus), and `benchmark.json` beside it, where there is one.
Out: questions, every one checked, or one error that lists the bad rows. Trade-off: a set is read whole before anything
is scored, since its floors need all of it, and then lies on disk.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from spt.artifact import dump_json, hash_files, write_atomically
from spt.benchmark.grammar import Grammar
from spt.benchmark.question_rows import FIELDS, Reader
from spt.config import Headline, Questions, Source
from spt.config.values import Section
from spt.corpus import read_rows
from spt.corpus.seen import SeenIds
from spt.errors import QuestionError
from spt.records import Question

__all__ = ["Grammar", "QuestionSet", "hash_questions", "read_questions", "write_questions"]


class BenchmarkFile(Section):
    """What `benchmark.json` holds: the set's name, its headline metric, its grammar, and how it was made."""

    name: str
    headline: Headline = "exact"
    grammar: dict[str, tuple[str, ...]] | None = None
    made_by: dict[str, Any] = Field(default={})


@dataclass(frozen=True)
class QuestionSet:
    """Questions that are scored together, in the order of their file.

    `grammar` is None where the set has no templates of its own.
    """

    name: str
    headline: Headline
    questions: Sequence[Question]
    grammar: Grammar | None = None


def read_questions(source: str | Path | Questions, limit: int | None = None) -> QuestionSet:
    """Return the questions of a file, or of the files of a section `data.questions`; the first `limit` if given.

    In a table (CSV, TSV) a cell of targets or distractors holds one text, or several joined by `|`. An id that is not
    given is `<file stem>:<line>`, a fact_id the id; a row without targets but with a completion has that as its target.
    A row with a false value in a column `keep` is left out; other columns that no question has are ignored.

    Raises QuestionError listing up to ten bad rows, each with file, line, value, what is allowed and the remedy;
    CorpusError where the file itself cannot be read.
    """
    section = _section(source)
    about = read_about(Path(section.place))
    with SeenIds() as seen:
        reader = Reader(section.fields, seen)
        for path, direction in section.files:
            for row in read_rows(Source(path=path), reader.reject):
                if limit is not None and len(reader.questions) >= limit:
                    break
                reader.add(row, direction)
    reader.check(", ".join(path for path, _ in section.files))
    grammar = Grammar(about.grammar) if about.grammar else None
    return QuestionSet(about.name, about.headline, reader.questions, grammar)


def hash_questions(source: str | Path | Questions) -> str:
    """Return a hash of the question files, of how they are read, and of what their set says of itself.

    Raises QuestionError where one cannot be read.
    """
    section = _section(source)
    beside = Path(section.place).parent / "benchmark.json"
    paths = [Path(path) for path, _ in section.files]
    try:
        hashed = hash_files([*paths, *([beside] if beside.exists() else [])])
    except OSError as error:
        raise QuestionError(
            f"data.questions: {error.filename}: {error.strerror}; `spt benchmark list` names ready question sets"
        ) from None
    # Ids that are not given are made of the files' names.
    read = [[path.name, direction] for path, (_, direction) in zip(paths, section.files, strict=True)]
    how = dump_json([read, section.fields], indent=None)
    return hashlib.sha256(f"{hashed} {how}".encode()).hexdigest()


def _section(source: str | Path | Questions) -> Questions:
    return source if isinstance(source, Questions) else Questions(path=str(source))


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
