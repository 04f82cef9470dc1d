"""What was counted while a corpus was cut: in one shard, or in all of them.

In: segmentations, as the segmenter gave them (the names that it saw are not stored). Out: numbers that add up over
shards. Trade-off: a name counts as kept whole by its characters alone, whatever the segmenter meant.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from spt.records import Segmentation

_POSSESSIVE = re.compile(r"['’]s\b")
_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class Counts:
    """Numbers of some segmentations.

    `single` counts records of one unit, which no order can change. `entities` counts the names that the segmenter saw:
    `seen`, of these `whole` in one unit, of these `alone` in it (punctuation and *'s* aside); it is empty where none
    looks for names. `fallbacks` counts rows that another segmenter cut, by reason.
    """

    records: int = 0
    sentences: int = 0
    units: int = 0
    single: int = 0
    words_per_unit: Counter[int] = field(default_factory=Counter)
    segmenters: Counter[str] = field(default_factory=Counter)
    entities: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Sequence[Segmentation]) -> "Counts":
        """Return the counts of some segmentations."""
        entities: Counter[str] = Counter()
        for row in rows:
            entities.update(dict.fromkeys(("seen", "whole", "alone"), 0) if row.names is not None else {})
            entities.update(_entities(row))
        return cls(
            records=len(rows),
            sentences=sum(len(row.sentences) for row in rows),
            units=sum(len(row.cuts) + 1 for row in rows),
            single=sum(not row.cuts for row in rows),
            words_per_unit=Counter(len(unit.split()) for row in rows for unit in row.units),
            segmenters=Counter(row.segmenter for row in rows),
            entities=entities,
            fallbacks=Counter(row.fallback for row in rows if row.fallback is not None),
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Counts":
        """Return the counts that `to_json` wrote."""
        return cls(
            records=value["records"],
            sentences=value["sentences"],
            units=value["units"],
            single=value["single"],
            words_per_unit=Counter({int(words): count for words, count in value["words_per_unit"].items()}),
            segmenters=Counter(value["segmenters"]),
            entities=Counter(value["entities"]),
            fallbacks=Counter(value["fallbacks"]),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: {str(key): count for key, count in value.items()} if isinstance(value, Counter) else value
            for name, value in values.items()
        }

    def __add__(self, other: "Counts") -> "Counts":
        values = {field.name: (getattr(self, field.name), getattr(other, field.name)) for field in fields(self)}
        return Counts(**{name: _sum(*pair) for name, pair in values.items()})


def _sum(left: Any, right: Any) -> Any:
    if not isinstance(left, Counter):
        return left + right
    # A Counter's own sum would lose the zeros.
    return Counter({key: left[key] + right[key] for key in [*left, *right]})


def _entities(row: Segmentation) -> Iterator[str]:
    spans = row.spans
    starts = [start for start, _ in spans]
    for start, end in row.names or ():
        yield "seen"
        unit_start, unit_end = spans[bisect_right(starts, start) - 1]
        if end <= unit_end:
            yield "whole"
            rest = row.text[unit_start:start] + " " + row.text[end:unit_end]
            if not _WORD.search(_POSSESSIVE.sub("", rest)):
                yield "alone"
