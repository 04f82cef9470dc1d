"""A two-column file of subjects and objects, and templates → our corpus and questions, both directions.

In: rows with `subject` and `object` (and `relation`, where templates are given by relation), and a YAML file:

    train:    ["{subject} directed {object}.", "The director of {object} was {subject}."]
    forward:  ["Tell me what {subject} directed: it is"]          the answer is the object
    reversed: ["The person who directed {object} is"]             the answer is the subject

or `relations: {directed: {train: ..., forward: ..., reversed: ...}, mother: ...}`. Out: a corpus with a sentence a
pair and template, and a question a prompt; of equal prompts one, with every right answer as a target. Trade-off: the
questions are what the templates say; only a prompt that begins a training sentence is refused.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from spt.artifact import hash_file
from spt.benchmark.folder import Counts, Made, write_folder
from spt.benchmark.grammar import START, fill
from spt.config import Headline, Source
from spt.config.values import Section
from spt.config.yaml_text import parse_yaml
from spt.corpus import Row, read_rows, stop
from spt.errors import InputError
from spt.records import DIRECTIONS, Direction, Question

COLUMNS = ("subject", "object")
_ANSWER: Mapping[Direction, str] = {"forward": "object", "reversed": "subject"}

ABOUT = """\
Pairs of a subject and an object, each stated in the wordings of a file of templates. Forward questions give the
subject and ask for the object, reversed ones the other way round. `fact_id` is the object with its relation, so that
questions that share an answer are not counted as independent."""

LIMITS = "The wordings are those of the templates; an answer worded otherwise counts as wrong under strict metrics."


class Wordings(Section):
    """How one relation is taught and asked: texts with `{subject}` and `{object}`."""

    train: tuple[str, ...] = Field(min_length=1)
    forward: tuple[str, ...] = ()
    reversed: tuple[str, ...] = ()

    def prompts(self, direction: Direction) -> tuple[str, ...]:
        """Return the prompts of a direction."""
        return self.forward if direction == "forward" else self.reversed


class _File(Wordings):
    train: tuple[str, ...] = ()
    relations: dict[str | None, Wordings] = Field(default={})
    headline: Headline = "startswith"


@dataclass(frozen=True)
class Pair:
    """One row: its place in the file, and what it relates."""

    place: str
    subject: str
    object: str
    relation: str | None

    def fill(self, template: str) -> str:
        """Return a template with the pair in its slots."""
        return fill(template, lambda name: str(getattr(self, name)))

    @property
    def fact_id(self) -> str:
        """Return what its questions are about."""
        return self.object if self.relation is None else f"{self.relation}: {self.object}"


def make_pairs(source: Path, templates: Path, output: Path) -> Counts:
    """Return the counts of a benchmark written to `output` from a file of pairs and a file of templates.

    Raises InputError naming file, line and remedy.
    """
    file = _read_templates(templates)
    wordings = file.relations or {None: file}
    pairs, duplicates = _read_pairs(source, wordings)
    made = Made(
        name=source.name.split(".")[0],
        headline=file.headline,
        command=f"spt benchmark make --from {source.name} --templates {templates.name} --output FOLDER",
        licence="that of the pairs",
        about=ABOUT,
        limits=LIMITS,
        rows=list(_train_rows(pairs, wordings)),
        questions=[question for direction in DIRECTIONS for question in _questions(pairs, wordings, direction)],
        grammar=_grammar(pairs, wordings),
        inputs={path.name: hash_file(path) for path in (source, templates)},
        dropped={"exact duplicate": duplicates},
    )
    return write_folder(made, output)


def _read_templates(path: Path) -> _File:
    try:
        values = parse_yaml(path.read_text(encoding="utf-8-sig"), str(path))
        file = _File.model_validate(values)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); --templates takes a YAML file in UTF-8") from None
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors())
        raise InputError(f"{path}: {problems}. Give lists of texts under train, forward and reversed") from None
    if bool(file.train) == bool(file.relations):
        raise InputError(f"{path}: give either train, forward and reversed, or relations with these for each")
    for name, wordings in (file.relations or {"": file}).items():
        _check(f"{path}{f': relations.{name}' if name else ''}", wordings)
    return file


def _check(place: str, wordings: Wordings) -> None:
    needed = {"train": COLUMNS, "forward": ("subject",), "reversed": ("object",)}
    for kind, slots in needed.items():
        for text in getattr(wordings, kind):
            if set(_slots(text)) != set(slots):
                wanted = " and ".join(f"{{{slot}}}" for slot in slots)
                raise InputError(f"{place}: {kind}: {text!r} must hold {wanted}, and no other slot")
    if not (wordings.forward or wordings.reversed):
        raise InputError(f"{place}: gives no question; add prompts under forward and reversed")
    for text in (*wordings.forward, *wordings.reversed):
        if any(taught.startswith(text) for taught in wordings.train):
            raise InputError(f"{place}: the prompt {text!r} begins a training sentence; ask in a wording not taught")


def _slots(text: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", text)


def _read_pairs(source: Path, wordings: Mapping[str | None, Wordings]) -> tuple[list[Pair], int]:
    pairs: dict[tuple[str, str, str | None], Pair] = {}
    count = 0
    for row in read_rows(Source(path=str(source)), stop):
        pair = _pair(row, wordings)
        pairs.setdefault((pair.subject, pair.object, pair.relation), pair)
        count += 1
    if not pairs:
        raise InputError(f"{source}: holds no pairs; give rows with {' and '.join(COLUMNS)}")
    return list(pairs.values()), count - len(pairs)


def _pair(row: Row, wordings: Mapping[str | None, Wordings]) -> Pair:
    place = f"{row.source}:{row.line}"
    cells: dict[str, Any] = {}
    for name in COLUMNS:
        value = row.values.get(name)
        if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
            found = ", ".join(row.values)
            raise InputError(
                f"{place}: {name} {value!r} is no text; fields found: {found}; each row needs subject, object"
            )
        cells[name] = str(value).strip()
    relation = None if None in wordings else row.values.get("relation")
    if relation not in wordings:
        raise InputError(f"{place}: relation {relation!r} has no templates; there are {', '.join(map(str, wordings))}")
    return Pair(row.place, relation=relation, **cells)


def _grammar(pairs: list[Pair], wordings: Mapping[str | None, Wordings]) -> dict[str, list[str]] | None:
    """Return what tells a taught sentence from one in another order, or None where its parts could not be told apart.

    That is where a subject or object holds a slot, or the words that stand between two slots.
    """
    rules: dict[str, list[str]] = {START: []}
    for number, (relation, wording) in enumerate(wordings.items()):
        own = [pair for pair in pairs if pair.relation == relation]
        values = {column: list(dict.fromkeys(getattr(pair, column) for pair in own)) for column in COLUMNS}
        between = {words for text in wording.train for words in re.split(r"\{\w+\}", text)[1:-1]}
        if any(_slots(one) or any(words in one for words in between) for column in COLUMNS for one in values[column]):
            return None
        if own:
            rules[START] += [re.sub(r"\{(\w+)\}", rf"{{\1_{number}}}", text) for text in wording.train]
            rules |= {f"{column}_{number}": values[column] for column in COLUMNS}
    return rules


def _train_rows(pairs: list[Pair], wordings: Mapping[str | None, Wordings]) -> Iterator[dict[str, Any]]:
    for pair in pairs:
        for number, template in enumerate(wordings[pair.relation].train, 1):
            yield {
                "id": f"{pair.place}/{number}",
                "text": pair.fill(template),
                "fact_id": pair.fact_id,
                "subject": pair.subject,
                "object": pair.object,
                **({} if pair.relation is None else {"relation": pair.relation}),
            }


def _questions(pairs: list[Pair], wordings: Mapping[str | None, Wordings], direction: Direction) -> Iterator[Question]:
    answer = _ANSWER[direction]
    answers: dict[tuple[str, str | None], list[Pair]] = defaultdict(list)
    for pair in pairs:
        for prompt in wordings[pair.relation].prompts(direction):
            answers[pair.fill(prompt), pair.relation].append(pair)
    for number, ((prompt, relation), right) in enumerate(answers.items(), 1):
        targets = tuple(dict.fromkeys(str(getattr(pair, answer)) for pair in right))
        yield Question(
            f"{right[0].place}/{direction}-{number}", right[0].fact_id, direction, prompt, targets, relation=relation
        )
