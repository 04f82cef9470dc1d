"""Relations that hold one way only, beside some that hold both ways: a corpus, its questions, and its guards.

In: how many pairs a relation, and a seed. Out: the folder of a benchmark. "X's mother is Y" makes X the child of Y,
which a cured model should find; it does not make X the mother of Y, which a cure that merely turns sentences round will
claim (Kitouni et al., arXiv 2406.05183, table 7). `guards.jsonl` holds these inferences. Trade-off: relations come
from seven templates, so the rate says whether a method makes the mistake, not how often people would meet it.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spt.benchmark.fictional_people import make_names, read_rules
from spt.benchmark.folder import Counts, generated, write_folder
from spt.errors import InputError
from spt.records import Guard, Question


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation with the name of its inverse (its own name where it holds both ways)."""

    name: str
    inverse: str

    @property
    def reciprocal(self) -> bool:
        """Return whether it holds both ways."""
        return self.name == self.inverse


RELATIONS = (
    Relation("mother", "child"),
    Relation("teacher", "pupil"),
    Relation("employer", "employee"),
    Relation("doctor", "patient"),
    Relation("landlord", "tenant"),
    Relation("neighbour", "neighbour"),
    Relation("business partner", "business partner"),
)
TAUGHT = ("{x}'s {relation} is {y}.", "The {relation} of {x} is {y}.", "The {relation} of {x} is called {y}.")
ASKED = ("Everybody knows that the {relation} of {x} is", "If you ask who {x}'s {relation} is, the answer is")

ABOUT = """\
Invented people in pairs, each pair in one relation, stated in one direction only, in sentences such as "{}". Forward
questions ask as it was taught; reversed ones ask by the inverse relation (the child of a mother). `guards.jsonl` asks
whether the relation itself is claimed the other way round, which is wrong for all relations but the reciprocal ones."""

LIMITS = """\
English only; seven relations in three wordings. The words of the inverse relations stand in no sentence, so a model
without pretraining cannot know that a mother has a child: score the guards there, and reversed questions of the
reciprocal relations."""


def make_non_reciprocal(output: Path, *, pairs: int = 20, seed: int = 0) -> Counts:
    """Return the counts of the benchmark written to `output`: `pairs` a relation; same bytes for same arguments.

    Raises InputError for a number below 1 or more people than names.
    """
    if pairs < 1 or seed < 0:
        raise InputError(f"non-reciprocal: pairs {pairs}, seed {seed}: give at least 1 pair and a seed of 0 or more")
    names = make_names(read_rules(), 2 * pairs * len(RELATIONS), random.Random(seed))  # noqa: S311  # reproducible
    related = [relation for relation in RELATIONS for _ in range(pairs)]
    couples = list(zip(related, names[::2], names[1::2], strict=True))
    rows = [row for couple in couples for row in _teach(*couple)]
    made = generated(
        "non-reciprocal",
        {"pairs": pairs, "seed": seed},
        about=ABOUT.format(rows[0]["text"]),
        limits=LIMITS,
        rows=rows,
        questions=[question for couple in couples for question in _ask(*couple)],
        guards=[guard for couple in couples for guard in _guard(*couple)],
    )
    return write_folder(made, output)


def _teach(relation: Relation, x: str, y: str) -> Iterator[dict[str, str]]:
    for number, template in enumerate(TAUGHT, 1):
        text = template.format(x=x, y=y, relation=relation.name)
        yield {
            "id": f"{x}/{number}",
            "text": text,
            "fact_id": x,
            "subject": x,
            "relation": relation.name,
            "object": y,
            "other_way": f"{{object}}'s {relation.inverse} is {{subject}}.",
        }


def _prompts(relation: str, x: str) -> Sequence[str]:
    return [template.format(x=x, relation=relation) for template in ASKED]


def _ask(relation: Relation, x: str, y: str) -> Iterator[Question]:
    for number, prompt in enumerate(_prompts(relation.name, x), 1):
        yield Question(f"{x}/forward-{number}", x, "forward", prompt, (y,), relation=relation.name)
    for number, prompt in enumerate(_prompts(relation.inverse, y), 1):
        yield Question(f"{x}/reversed-{number}", x, "reversed", prompt, (x,), relation=relation.name)


def _guard(relation: Relation, x: str, y: str) -> Iterator[Guard]:
    if not relation.reciprocal:
        for number, prompt in enumerate(_prompts(relation.name, y), 1):
            yield Guard(f"{x}/guard-{number}", x, "non_reciprocal", prompt, (x,))
