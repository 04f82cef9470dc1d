"""What else is right, and what else there was to say: wordings of a fact, and other facts' answers for the floor.

In: the questions of a set. Out: texts by question, the same whatever the order of the questions. Trade-off: all targets
lie on disk in the order of their facts and are looked up, a few dozen a question, so that a set may have any size; and
of a very large one only a seeded sample is looked through for wrong answers, so that a question takes no longer there.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from sqlite3 import Connection
from weakref import finalize

import numpy as np

from spt.metrics.text import fold, trim
from spt.records import Question
from spt.scratch import open_scratch

AT_MOST = 32
"""Other facts that a question is scored against."""
_LOOKED_AT = 1024
_REMEMBERED = 1 << 14
_ASKED = "CREATE TABLE asked (fact_id TEXT, direction TEXT, relation TEXT, targets TEXT)"
_ONCE = (
    "CREATE TABLE wording AS SELECT * FROM asked GROUP BY fact_id, direction, relation, targets",
    "CREATE INDEX fact ON wording (fact_id, direction, relation)",
    "DROP TABLE asked",
    "CREATE TABLE pool (direction TEXT, relation TEXT, fact_id TEXT, targets TEXT)",
)
_FILL = (
    "INSERT INTO pool "
    "SELECT direction, CASE WHEN ? THEN ifnull(relation, '') END AS half, fact_id, targets FROM wording "
    "GROUP BY direction, half, fact_id, targets ORDER BY direction, half, fact_id, targets COLLATE texts"
)

Others = tuple[tuple[str, ...], ...]


class Wordings:
    """All wordings of each question's fact, its own targets first, by question.

    They are the targets of every question of the same fact, direction and relation.
    """

    def __init__(self, questions: Iterable[Question]) -> None:
        self.rows = open_scratch(_ASKED)
        finalize(self, self.rows.close)
        for question in questions:
            row = question.fact_id, question.direction, question.relation, json.dumps(question.targets)
            self.rows.execute("INSERT INTO asked VALUES (?, ?, ?, ?)", row)
        for statement in _ONCE:
            self.rows.execute(statement)

    def __getitem__(self, question: Question) -> tuple[str, ...]:
        same = "SELECT targets FROM wording WHERE fact_id = ? AND direction = ? AND relation IS ?"
        found = self.rows.execute(same, (question.fact_id, question.direction, question.relation))
        known = {text for (targets,) in found for text in json.loads(targets)}
        return tuple(dict.fromkeys((*question.targets, *sorted(known))))


class Floors:
    """The targets of one question of up to `at_most` other facts, none of them also right, by question.

    They come from questions of the same direction and relation, or where those leave none, of the same direction. The
    draw depends on the seed, the question's id and the set of questions, not on their order. `wordings` are theirs.
    """

    def __init__(self, questions: Iterable[Question], seed: int, at_most: int = AT_MOST) -> None:
        self.wordings, self._seed, self._at_most = Wordings(questions), seed, at_most
        rows = self.wordings.rows
        self._pools = _make_pools(rows) if at_most else {}
        # In a small set every row is read again and again.
        self._read = lru_cache(_REMEMBERED)(partial(_read_row, rows))

    def __getitem__(self, question: Question) -> Others:
        if not self._at_most:
            return ()
        right = self.wordings[question]
        pools = (self._pools[question.direction, relation] for relation in (question.relation or "", None))
        drawn = (_draw(question, right, pool, self._read, self._seed, self._at_most) for pool in pools)
        return next(filter(None, drawn), ())


@lru_cache(maxsize=_REMEMBERED)  # a target is looked at for many questions
def _bare(text: str) -> str:
    return fold(trim(text))


def _make_pools(rows: Connection) -> dict[tuple[str, str | None], range]:
    """Return which rows of the table `pool`, filled here, are of each direction and relation, and of each direction."""
    rows.create_collation("texts", _compare)
    for apart in (True, False):
        rows.execute(_FILL, (apart,))
    found = rows.execute("SELECT direction, relation, min(rowid), max(rowid) FROM pool GROUP BY direction, relation")
    return {(direction, relation): range(first, last + 1) for direction, relation, first, last in found}


def _compare(left: str, right: str) -> int:
    first, second = json.loads(left), json.loads(right)
    return int(first > second) - int(first < second)


def _read_row(rows: Connection, number: int) -> tuple[str, tuple[str, ...]]:
    fact, targets = rows.execute("SELECT fact_id, targets FROM pool WHERE rowid = ?", (number,)).fetchone()
    return fact, tuple(json.loads(targets))


def _draw(
    question: Question,
    right: Sequence[str],
    pool: range,
    read: Callable[[int], tuple[str, tuple[str, ...]]],
    seed: int,
    at_most: int,
) -> Others:
    generator = np.random.default_rng(list(hashlib.sha256(f"{seed}:{question.id}".encode()).digest()))
    own = [_bare(text) for text in right if _bare(text)]
    drawn: dict[str, tuple[str, ...]] = {}
    said: set[str] = set()
    for index in generator.choice(len(pool), min(len(pool), _LOOKED_AT), replace=False):
        fact, targets = read(pool[index])
        others = [_bare(text) for text in targets]
        if fact == question.fact_id or fact in drawn or not said.isdisjoint(others):
            continue
        # Containment either way covers equality and prefixes: no rule may find one answer in the other.
        if all(others) and not any(other in text or text in other for other in others for text in own):
            drawn[fact] = targets
            said.update(others)
        if len(drawn) == at_most:
            break
    return tuple(drawn.values())
