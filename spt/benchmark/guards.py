"""`guards.jsonl` beside a question file ⇄ Guards: what a model that learned too much would say.

In: JSON Lines with `id`, `fact_id`, `kind`, `prompt`, `forbidden`. Out: guards, every one checked. Trade-off: a
`wrong_frame` row without `forbidden` forbids every target of the question set, so that the file stays small however
many facts there are.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spt.artifact import hash_file, write_atomically
from spt.config import Source
from spt.corpus import Row, read_rows, stop
from spt.errors import QuestionError
from spt.records import Guard

KINDS = ("non_reciprocal", "wrong_frame")


def guards_file(questions: str | Path) -> Path:
    """Return where the guards of a question file lie, whether there are some or not."""
    return Path(questions).parent / "guards.jsonl"


def read_guards(questions: str | Path) -> tuple[Guard, ...] | None:
    """Return the guards beside a question file, or None where it has none.

    Raises QuestionError for a row that is no guard, CorpusError for one that cannot be read.
    """
    path = guards_file(questions)
    if not path.exists():
        return None
    guards: dict[str, Guard] = {}
    for row in read_rows(Source(path=str(path)), stop):
        guard = _guard(row)
        if guard.id in guards:
            raise _refuse(row, f"id {guard.id!r} was given before; every guard needs its own")
        guards[guard.id] = guard
    return tuple(guards.values())


def hash_guards(questions: str | Path) -> str | None:
    """Return a hash of the guards beside a question file, or None where it has none."""
    path = guards_file(questions)
    return hash_file(path) if path.exists() else None


def write_guards(path: Path, guards: Iterable[Guard]) -> None:
    """Write guards as JSON Lines; reading them gives equal guards."""
    write_atomically(path, "".join(json.dumps(asdict(guard), ensure_ascii=False) + "\n" for guard in guards))


def _guard(row: Row) -> Guard:
    values = row.values
    for name in ("id", "fact_id", "kind", "prompt"):
        if not (isinstance(values.get(name), str) and values[name].strip()):
            raise _refuse(row, f"{name} {values.get(name)!r} must be text that is not blank")
    if values["kind"] not in KINDS:
        raise _refuse(row, f"kind {values['kind']!r} is none of {', '.join(KINDS)}")
    forbidden: Any = values.get("forbidden", [])
    if not isinstance(forbidden, list) or not all(isinstance(text, str) and text.strip() for text in forbidden):
        raise _refuse(row, f'forbidden {forbidden!r} must be a list of texts, none blank, such as ["Ada"]')
    if not forbidden and values["kind"] == "non_reciprocal":
        raise _refuse(row, "forbidden is empty; give the continuation that would be wrong")
    return Guard(values["id"], values["fact_id"], values["kind"], values["prompt"], tuple(forbidden))


def _refuse(row: Row, problem: str) -> QuestionError:
    return QuestionError(f"{row.source}:{row.line}: {problem}")
