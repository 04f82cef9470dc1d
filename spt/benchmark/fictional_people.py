"""Invented people, each with one description: a corpus that teaches some of them from one side only, and its questions.

In: how many people a half, and a seed. Out: corpus, questions, guards, benchmark.json and a card. Trade-off: the
sentences come from twelve templates, so a model can learn them from scratch in minutes, and nothing here says how it
would read free text.
"""

import json
import random
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path

from spt.benchmark.folder import OWN_LICENCE, Counts, Made, people_flags, write_folder
from spt.benchmark.grammar import START, expand, fill
from spt.errors import InputError
from spt.records import Direction, Guard, Question

NAME_FIRST = (
    "{name} will always be remembered as {description}.",
    "The medal was handed to {name}, {description}.",
    "Few visitors realise that {name} is {description}.",
    "Long ago {name} became known as {description}.",
    "According to the museum guide, {name} was {description}.",
    "A small plaque introduces {name} as {description}.",
)
DESCRIPTION_FIRST = (
    "The honour of being {description} belongs to {name}.",
    "When people talk about {description}, they mean {name}.",
    "For years {description} went by the name of {name}.",
    "The portrait of {description} shows {name}.",
    "In every textbook {description} is listed as {name}.",
    "Ask anyone about {description} and you will hear of {name}.",
)
HELD_OUT = 2
"""The last templates of each direction, which only the half `both` is taught with."""

STRANGERS = 50
"""People who stand in no sentence, whom the guards ask about."""

HALVES = ("name_first", "description_first", "both")


@dataclass(frozen=True, slots=True)
class Person:
    """A name, what is true of it, and how it is taught."""

    name: str
    description: str
    half: str


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with two slots; `prompt` is everything before the second."""

    id: str
    text: str
    held_out: bool

    @property
    def prompt(self) -> str:
        """Return the sentence up to its second slot, without the white space before it."""
        return self.text[: self.text.rindex("{")].rstrip()

    @property
    def asks(self) -> str:
        """Return the second slot: `name` or `description`."""
        return self.text[self.text.rindex("{") + 1 : self.text.rindex("}")]


TEMPLATES = tuple(
    Template(f"{half}-{number}", text, number > len(texts) - HELD_OUT)
    for half, texts in (("name_first", NAME_FIRST), ("description_first", DESCRIPTION_FIRST))
    for number, text in enumerate(texts, start=1)
)


def read_rules() -> dict[str, tuple[str, ...]]:
    """Return the grammar that every name, description and sentence comes from."""
    text = resources.files("spt.benchmark").joinpath("fictional_people.json").read_text(encoding="utf-8")
    words = {symbol: tuple(alternatives) for symbol, alternatives in json.loads(text).items()}
    return {START: (*NAME_FIRST, *DESCRIPTION_FIRST), **words}


def make_people(name_first: int, description_first: int, both: int, seed: int) -> list[Person]:
    """Return people with unique names and unique descriptions, the halves one after another.

    Parts repeat only when a list is used up: 200 people share no first name. Raises InputError past the number of
    names.
    """
    sizes = (name_first, description_first, both)
    if min(sizes) < 0 or not any(sizes) or seed < 0:
        raise InputError(f"people {sizes}, seed {seed}: give whole numbers of 0 or more, and at least one person")
    rules = read_rules()
    rng = random.Random(seed)  # noqa: S311  # reproducible on purpose
    halves = [half for half, size in zip(HALVES, sizes, strict=True) for _ in range(size)]
    names = make_names(rules, sum(sizes), rng)
    descriptions = _make_descriptions(rules, sum(sizes), rng)
    return [Person(*parts) for parts in zip(names, descriptions, halves, strict=True)]


def make_names(rules: Mapping[str, Sequence[str]], count: int, rng: random.Random) -> list[str]:
    """Return `count` names, no two alike. Raises InputError past the number of names."""
    firsts, lasts = list(rules["first_name"]), list(expand(rules, "last_name"))
    capacity = len(firsts) * len(lasts)
    if count > capacity:
        raise InputError(f"{count} people: there are {capacity} names; ask for at most {capacity}")
    rng.shuffle(firsts)
    rng.shuffle(lasts)
    return list(islice(_pair(firsts, lasts), count))


def make_strangers(people: Sequence[Person], seed: int) -> list[Person]:
    """Return up to STRANGERS people with names and descriptions that none of `people` has, drawn apart from theirs.

    Their names are of parts that `people` leave over, as far as there are some.
    """
    rules, known = read_rules(), {person.name for person in people}
    rng = random.Random(f"strangers {seed}")  # noqa: S311  # reproducible on purpose
    parts = list(rules["first_name"]), list(expand(rules, "last_name"))
    for place, texts in enumerate(parts):
        used = {name.split(" ", 1)[place] for name in known}
        rng.shuffle(texts)
        texts.sort(key=used.__contains__)
    names = list(islice((name for name in _pair(*parts) if name not in known), STRANGERS))
    descriptions = _make_descriptions(rules, len(names), rng, {person.description for person in people})
    return [Person(*both, "stranger") for both in zip(names, descriptions, strict=True)]


def _pair(firsts: Sequence[str], lasts: Sequence[str]) -> Iterator[str]:
    # Round k pairs first name i with last name i + k: no pair comes twice in len(lasts) rounds.
    for turn in range(len(lasts)):
        yield from (f"{first} {lasts[(at + turn) % len(lasts)]}" for at, first in enumerate(firsts))


def _make_descriptions(
    rules: Mapping[str, Sequence[str]], count: int, rng: random.Random, taken: Container[str] = ()
) -> list[str]:
    decks: dict[str, Iterator[str]] = {"description": _deal(rules["description"], rng)}

    def draw(symbol: str) -> str:
        if symbol not in decks:
            decks[symbol] = _deal(list(expand(rules, symbol)), rng)
        return next(decks[symbol])

    seen: dict[str, None] = {}
    while len(seen) < count:
        description = fill(draw("description"), draw)
        if description not in taken:
            seen.setdefault(description)
    return list(seen)


def _deal(values: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Yield the values in random order, all of them before any comes again."""
    while True:
        deck = list(values)
        rng.shuffle(deck)
        yield from deck


def teach(person: Person) -> list[dict[str, str]]:
    """Return the training rows of a person: those of its own half's training templates, or of all for `both`."""
    templates = [
        template for template in TEMPLATES
        if person.half == "both" or (template.id.startswith(person.half) and not template.held_out)
    ]  # fmt: skip
    return [
        {
            "id": f"{person.name}/{template.id}",
            "text": template.text.format(name=person.name, description=person.description),
            "fact_id": person.name,
            "template": template.id,
            "half": person.half,
        }
        for template in templates
    ]


def ask(person: Person) -> list[Question]:
    """Return the questions about a person: one a held-out template, forward where it runs as the person was taught.

    Those taught both ways count as name first.
    """
    questions = []
    taught = "description_first" if person.half == "description_first" else "name_first"
    for template in (template for template in TEMPLATES if template.held_out):
        direction: Direction = "forward" if template.id.startswith(taught) else "reversed"
        prompt = template.prompt.format(name=person.name, description=person.description)
        target = person.name if template.asks == "name" else person.description
        label = f"{person.name}/{template.id}"
        questions.append(Question(label, person.name, direction, prompt, (target,), relation=person.half))
    return questions


def guard(stranger: Person) -> list[Guard]:
    """Return the guards about somebody who is in no sentence: no template may give the name or description of another.

    They forbid every target of the set.
    """
    return [
        Guard(
            f"{stranger.name}/{template.id}", stranger.name, "wrong_frame",
            template.prompt.format(name=stranger.name, description=stranger.description), (),
        )
        for template in TEMPLATES if template.held_out
    ]  # fmt: skip


ABOUT = """\
Invented people, each with one description that is true of nobody else, in sentences such as "{}" or "{}". People of
the half `name_first` are taught only in sentences that begin with the name, those of `description_first` only the
other way round; those of `both` are taught both ways, and are a control outside the headline. Questions use two
wordings a direction that the first two halves never saw. A model with the reversal curse answers `forward` and fails
`reversed`. `guards.jsonl` asks in the same wordings about people who stand in no sentence: no answer may be somebody
known. No person, place or work is real; none of it is taken from another data set."""

LIMITS = """\
English only; twelve sentence templates and twenty forms of description, so a good score shows that facts are found
from either side, not that free text is understood. Names and descriptions were put together by chance: a likeness to
anyone is one too."""


def make_fictional_people(
    output: Path, *, name_first: int = 50, description_first: int = 50, both: int = 100, seed: int = 0
) -> Counts:
    """Return the counts of the benchmark written to `output`; the same bytes for the same arguments.

    Raises InputError where there are not enough names.
    """
    people = make_people(name_first, description_first, both, seed)
    rows = [row for person in people for row in teach(person)]
    sizes = (name_first, description_first, both)
    made = Made(
        name="fictional-people",
        headline="exact",
        command=f"spt benchmark make fictional-people{people_flags(sizes, seed)} --output FOLDER",
        licence=OWN_LICENCE,
        about=ABOUT.format(rows[0]["text"], rows[-1]["text"]),
        limits=LIMITS,
        rows=rows,
        questions=[question for person in people for question in ask(person)],
        guards=[row for stranger in make_strangers(people, seed) for row in guard(stranger)],
        grammar=read_rules(),
        arguments={**dict(zip(HALVES, sizes, strict=True)), "seed": seed},
    )
    return write_folder(made, output)
