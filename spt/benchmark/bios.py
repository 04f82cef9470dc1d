"""Invented biographies of several sentences, and questions after their attributes and after their people.

In the manner of bioS (Allen-Zhu and Li, Physics of Language Models 3.1 and 3.2, arXiv 2309.14316 and 2309.14402): six
attributes a person, many wordings, sentences in a fixed or a shuffled order, the full name repeated or a pronoun.
Forward questions extract an attribute, a part of one (the year of birth) or two together; reversed ones are inverse
search from one, three or all attributes. In: how many people, and a seed. Out: the folder of a benchmark. Trade-off:
the share `question_share` of the people is also taught in the questions' own wordings, both directions, and asked
nothing: without it a model knows the facts and not the form, and a low score says nothing.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from spt.benchmark.fictional_people import make_names, read_rules
from spt.benchmark.folder import Counts, generated, write_folder
from spt.benchmark.grammar import expand
from spt.errors import InputError
from spt.records import DIRECTIONS, Question

ATTRIBUTES = ("birth_date", "birth_city", "university", "major", "employer", "work_city")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_YEARS = range(1900, 2000)
_DAYS = 28

ABOUT = """\
Invented people with six attributes each, in biographies of six sentences such as "{}", in the manner of bioS
(Allen-Zhu and Li, arXiv 2309.14316 and 2309.14402). Forward questions give the person and ask for an attribute, for a
part of one, or for two; reversed ones give one, three or all attributes and ask for the person (inverse search).
Nobody and nothing named here is real; none of it is taken from another data set."""

LIMITS = """\
English only; ten wordings an attribute. Biographies name the person first, so every reversed question asks for what
was only ever learned as the beginning. People who are also taught in the questions' wordings are asked nothing."""


@dataclass(frozen=True, slots=True)
class Person:
    """A name, a pronoun, and what is true of the person, by attribute."""

    name: str
    pronoun: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Style:
    """How biographies are written: how many a person, the order of their sentences, and what stands for the name."""

    biographies: int = 5
    shuffled: bool = True
    full_names: bool = True


def make_bios(
    output: Path,
    *,
    people: int = 200,
    biographies: int = 5,
    shuffled: bool = True,
    full_names: bool = True,
    question_share: float = 0.5,
    seed: int = 0,
) -> Counts:
    """Return the counts of the benchmark written to `output`; the same bytes for the same arguments.

    Raises InputError for a value out of range, or more people than names.
    """
    _check(people, biographies, question_share, seed)
    rules = json.loads(resources.files("spt.benchmark").joinpath("bios.json").read_text(encoding="utf-8"))
    rng = random.Random(seed)  # noqa: S311  # reproducible on purpose
    made_people = make_people(people, rules, rng)
    style = Style(biographies, shuffled, full_names)
    rows = [row for person in made_people for row in biographies_of(person, style, rules, rng)]
    shown = round(people * question_share)
    rows += [row for person in made_people[:shown] for row in taught_questions(person, rules["asked"])]
    arguments = {
        "people": people,
        "biographies": biographies,
        "shuffled": shuffled,
        "full_names": full_names,
        "question_share": question_share,
        "seed": seed,
    }
    made = generated(
        "bios",
        arguments,
        about=ABOUT.format(rows[0]["text"]),
        limits=LIMITS,
        rows=rows,
        questions=list(ask(made_people, shown, rules["asked"])),
    )
    return write_folder(made, output)


def _check(people: int, biographies: int, question_share: float, seed: int) -> None:
    days = len(_YEARS) * len(_MONTHS) * _DAYS
    if not (0 < people <= days and biographies > 0 and 0 <= question_share < 1 and seed >= 0):
        raise InputError(
            f"bios: people {people}, biographies {biographies}, question_share {question_share}, seed {seed}: give 1 "
            f"to {days} people, at least one biography each, a share from 0 to below 1, and a seed of 0 or more"
        )


def make_people(count: int, rules: Mapping[str, Any], rng: random.Random) -> list[Person]:
    """Return people with unique names and birth dates; other attributes may be shared."""
    names = make_names(read_rules(), count, rng)
    values = {kind: list(expand(rules, kind)) for kind in ("place", "university", "major", "employer")}
    seats = {employer: rng.choice(values["place"]) for employer in values["employer"]}
    days = len(_YEARS) * len(_MONTHS) * _DAYS
    dates = rng.sample(range(days), count)
    people = []
    for name, date in zip(names, dates, strict=True):
        year, rest = divmod(date, len(_MONTHS) * _DAYS)
        month, day = divmod(rest, _DAYS)
        employer = rng.choice(values["employer"])
        facts = {
            "birth_date": f"{_MONTHS[month]} {day + 1}, {_YEARS[year]}",
            "birth_year": str(_YEARS[year]),
            "birth_city": rng.choice(values["place"]),
            "university": rng.choice(values["university"]),
            "major": rng.choice(values["major"]),
            "employer": employer,
            "work_city": seats[employer],
        }
        people.append(Person(name, rng.choice(("She", "He")), facts))
    return people


def biographies_of(
    person: Person, style: Style, rules: Mapping[str, Any], rng: random.Random
) -> Iterator[dict[str, Any]]:
    """Yield the biographies of a person: six sentences each, the wordings and the order drawn anew.

    `facts` are what the sentences state, in their order, each with a template that states it the other way round.
    """
    for number in range(1, style.biographies + 1):
        attributes = list(ATTRIBUTES)
        if style.shuffled:
            rng.shuffle(attributes)
        sentences: list[str] = []
        for attribute in attributes:
            subject = person.name if style.full_names or not sentences else person.pronoun
            sentences.append(rng.choice(rules["taught"][attribute]).format(subject=subject, **person.facts))
        facts = [
            {
                "subject": person.name,
                "relation": attribute,
                "object": person.facts[attribute],
                "other_way": rules["other_way"][attribute],
            }
            for attribute in attributes
        ]
        label = f"{person.name}/biography-{number}"
        yield {"id": label, "text": " ".join(sentences), "fact_id": person.name, "facts": facts}


def taught_questions(person: Person, asked: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield every question about a person as a sentence with its answer."""
    for direction in DIRECTIONS:
        for relation, (prompt, answer) in asked[direction].items():
            text = f"{_fill(prompt, person)} {_fill(answer, person)}."
            yield {"id": f"{person.name}/{relation}", "text": text, "fact_id": person.name}


def ask(people: Sequence[Person], shown: int, asked: Mapping[str, Any]) -> Iterator[Question]:
    """Yield the questions about the people after the first `shown`; whoever fits a reversed one is a right answer.

    A prompt that also fits one of the first, and so was taught, is left out.
    """
    fitting: dict[str, list[str]] = defaultdict(list)
    taught = {_fill(prompt, person) for person in people[:shown] for prompt, _ in asked["reversed"].values()}
    for person in people:
        for prompt, answer in asked["reversed"].values():
            fitting[_fill(prompt, person)].append(_fill(answer, person))
    for person in people[shown:]:
        for direction in DIRECTIONS:
            for relation, (template, answer) in asked[direction].items():
                prompt = _fill(template, person)
                if prompt in taught:
                    continue
                targets = tuple(fitting[prompt]) if direction == "reversed" else (_fill(answer, person),)
                label = f"{person.name}/{relation}"
                yield Question(label, person.name, direction, prompt, targets, relation=relation)


def _fill(text: str, person: Person) -> str:
    return text.format(name=person.name, **person.facts)
