"""Many questions → a sequence of them that lies on disk.

In: questions, one at a time. Out: a `Sequence[Question]` in the order they came, read by place, by slice, or page by
page. Trade-off: each reading of a question makes it anew, which takes microseconds, so that a million of them take no
more memory than a thousand.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import overload
from weakref import finalize

from spt.records import Question
from spt.scratch import open_scratch

PAGE = 512
"""Questions read at once."""
_ALL = "SELECT row FROM question"


class QuestionTable(Sequence[Question]):
    """Questions on disk; equal to any sequence of equal questions."""

    def __init__(self, questions: Iterable[Question] = ()) -> None:
        self._rows = open_scratch("CREATE TABLE question (place INTEGER PRIMARY KEY, fact_id TEXT, row TEXT)")
        finalize(self, self._rows.close)
        self._count = 0
        for question in questions:
            self.append(question)

    def append(self, question: Question) -> None:
        """Put a question behind the others."""
        row = [getattr(question, name) for name in Question.__slots__]
        values = self._count, question.fact_id, json.dumps(row)
        self._rows.execute("INSERT INTO question VALUES (?, ?, ?)", values)
        self._count += 1

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Question: ...
    @overload
    def __getitem__(self, place: slice) -> list[Question]: ...
    def __getitem__(self, place: int | slice) -> Question | list[Question]:
        if isinstance(place, slice):
            places = range(self._count)[place]
            if places.step != 1:
                return [self[number] for number in places]
            rows = self._rows.execute(f"{_ALL} WHERE place >= ? AND place < ?", (places.start, places.stop))
            return [_question(row) for (row,) in rows]
        place = range(self._count)[index(place)]
        return _question(*self._rows.execute(f"{_ALL} WHERE place = ?", (place,)).fetchone())

    def __iter__(self) -> Iterator[Question]:
        for start in range(0, self._count, PAGE):
            yield from self[start : start + PAGE]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(own == given for own, given in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def by_fact(self, at_least: int) -> Iterator[list[Question]]:
        """Yield the questions by `at_least` at a time (the last may be fewer), those of one fact together."""
        window: list[Question] = []
        for (row,) in self._rows.execute(f"{_ALL} ORDER BY fact_id"):
            question = _question(row)
            if len(window) >= at_least and window[-1].fact_id != question.fact_id:
                yield window
                window = []
            window.append(question)
        if window:
            yield window


def _question(row: str) -> Question:
    label, fact_id, direction, prompt, targets, distractors, relation = json.loads(row)
    return Question(label, fact_id, direction, prompt, tuple(targets), tuple(distractors), relation)
