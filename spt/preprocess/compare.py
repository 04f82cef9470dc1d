"""`spt preprocess --compare A B`: one segmentation against another.

    a folder                segmented data, or a run that holds some
    *.jsonl                 rows with "text" and "cuts", or several cuts_NAME: gold, one segmentation a NAME
    *.txt                   lines whose units are joined by [SEP], as the paper's code writes them

In: two of these. Out: boundary precision, recall and F1 for each pair of their segmentations, and what could not be
compared, by reason. Texts are matched by their characters; lines with [SEP] by all but white space, since joining
loses it. Trade-off: texts that one side lacks are counted, not guessed at.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from spt.config import Source
from spt.corpus import read_rows, stop
from spt.errors import CorpusError, InputError
from spt.preprocess.read import find_segmented, read_segmented
from spt.segment.agreement import agreement

SEPARATOR = "[SEP]"
_OPENING = 40
"""Characters, white space aside, by which lines that begin alike are told: a prompt's demonstration, copied."""
_COPIES = 3
_GOLD = 'must be an object with "text" and "cuts": [offsets inside the text]'

Cuts = Mapping[str, frozenset[int]]
"""The cuts of each text."""


@dataclass
class Side:
    """One side: its segmentations by name, and its rows that hold none, by reason."""

    segmentations: dict[str, dict[str, frozenset[int]]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, text: str, cuts: Iterable[int]) -> None:
        """Keep the cuts of a text; of two rows with the same text, the first."""
        self.segmentations.setdefault(name, {}).setdefault(text, frozenset(cuts))

    @property
    def texts(self) -> set[str]:
        """Return all its texts."""
        return {text for cuts in self.segmentations.values() for text in cuts}


def compare(a: Path, b: Path) -> dict[str, Any]:
    """Return the agreement of every segmentation in `a` with every one in `b`, and what was left out.

    Raises InputError where a side cannot be read, or the two share no text.
    """
    joined = [path for path in (a, b) if path.suffix == ".txt"]
    if len(joined) == 2:
        raise InputError(f"{a}, {b}: {SEPARATOR} files do not hold the texts exactly; compare one with segmented data")
    sides = {path: _read(path) for path in (a, b) if path not in joined}
    for path in joined:
        (other,) = sides.values()
        sides[path] = read_joined(path, other.texts)
    first, second = sides[a], sides[b]
    shared = first.texts & second.texts
    if not shared:
        raise InputError(f"{a} and {b} have no text in common; compare two segmentations of one corpus")
    rows = [
        {"a": name, "b": other, **_rates(cuts, others)}
        for name, cuts in first.segmentations.items()
        for other, others in second.segmentations.items()
    ]
    left_out = [
        {**side.left_out, **({"not in the other": missing} if (missing := len(side.texts - shared)) else {})}
        for side in (first, second)
    ]
    return {"texts": len(shared), "agreements": rows, "left_out": {"a": left_out[0], "b": left_out[1]}}


def _rates(cuts: Cuts, others: Cuts) -> dict[str, float]:
    found = agreement((cuts[text], others[text]) for text in cuts.keys() & others.keys())
    return {"precision": found.precision, "recall": found.recall, "f1": found.f1}


def _read(path: Path) -> Side:
    if path.is_dir():
        side = Side()
        for row in read_segmented(find_segmented(str(path))):
            side.add(path.name, row.text, row.cuts)
        return side
    if path.suffix == ".jsonl" and path.exists():
        return _read_gold(path)
    raise InputError(
        f"{path}: cannot be compared; give a folder of segmented data, a .jsonl file with text and cuts, or a .txt "
        f"file of units joined by {SEPARATOR}"
    )


def _read_gold(path: Path) -> Side:
    side = Side()
    for row in read_rows(Source(path=str(path)), _refuse):
        text = row.values.get("text")
        found = {name: cuts for name, cuts in row.values.items() if name == "cuts" or name.startswith("cuts_")}
        if not (isinstance(text, str) and found and all(_inside(text, cuts) for cuts in found.values())):
            raise InputError(f"{row.source}:{row.line}: {_GOLD}")
        for name, cuts in found.items():
            side.add(name, text, cuts)
    return side


def _refuse(error: CorpusError) -> NoReturn:
    raise InputError(f"{error.source}:{error.line}: {_GOLD} ({error.detail})")


def _inside(text: str, cuts: Any) -> bool:
    return isinstance(cuts, list) and all(isinstance(cut, int) and 0 < cut < len(text) for cut in cuts)


def read_joined(path: Path, texts: Iterable[str]) -> Side:
    """Return the segmentation of `texts` that a [SEP] file holds, and its other lines by reason.

    `not exact`: no text has these characters. `copied`: nor has it, and several such lines begin alike, as a prompt's
    demonstration does. `trailing separator` and `repeated separator` lines are used, and counted all the same.
    """
    lines = [str(row.values["text"]) for row in read_rows(Source(path=str(path)), stop)]
    known = {_letters(text): text for text in texts}
    unknown = [letters for line in lines if (letters := _letters(line.replace(SEPARATOR, ""))) not in known]
    openings = Counter(letters[:_OPENING] for letters in unknown)
    side = Side({path.name: {}}, Counter())
    for line in lines:
        units = [_letters(unit) for unit in line.split(SEPARATOR)]
        letters = "".join(units)
        if letters in known:
            side.add(path.name, known[letters], _offsets(known[letters], units))
            side.left_out.update(_oddities(units))
        else:
            side.left_out["copied" if openings[letters[:_OPENING]] >= _COPIES else "not exact"] += 1
    return side


def _oddities(units: list[str]) -> list[str]:
    trailing = ["trailing separator"] if not units[-1] else []
    return trailing + (["repeated separator"] if "" in units[1:-1] else [])


def _letters(text: str) -> str:
    return "".join(text.split())


def _offsets(text: str, units: list[str]) -> list[int]:
    """Return the cuts of a text from the lengths of its units, white space aside; white space goes to the later unit.

    units    Ann | Lee, | who        text    Ann Lee, who
    lengths  3     4      3          cuts       3    8
    """
    ends = [place + 1 for place, letter in enumerate(text) if not letter.isspace()]
    cuts, length = set(), 0
    for unit in units[:-1]:
        length += len(unit)
        if 0 < length < len(ends):
            cuts.add(ends[length - 1])
    return sorted(cuts)
