"""Relations that hold one way only, beside some that hold both ways: a corpus, its questions, and its guards.

In: how many pairs a relation, and a seed. Out: the folder of a benchmark. "X's mother is Y" makes X the child of Y,
which a cured model should find; it does not make X the mother of Y, which a cure that merely turns sentences round will
claim (Kitouni et al., arXiv 2406.05183, table 7). `guards.jsonl` holds these inferences. Other pairs show what the
words mean: they are told of both ways, in every wording, and never asked about; a model without pretraining learns only
there that a mother has a child. Trade-off: relations come from seven templates, so the rate says whether a method makes
the mistake, not how often people would meet it.
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
whether the relation itself is claimed the other way round, which is wrong for all relations but the reciprocal ones.
Other pairs, {} a relation, are told of both ways in all wordings, those of the questions too, and never asked about."""

LIMITS = """\
English only; seven relations in three wordings, two more in the questions. With `shown=0` the words of the inverse
relations and of the questions stand in no sentence, which suits a pretrained model."""


def make_non_reciprocal(output: Path, *, pairs: int = 20, shown: int = 20, seed: int = 0) -> Counts:
    """Return the counts of the benchmark written to `output`; same bytes for same arguments.

    `pairs` of each relation are asked about; `shown` are told of both ways. Raises InputError for a number out of range
    or more people than names.
    """
    if pairs < 1 or shown < 0 or seed < 0:
        raise InputError(
            f"non-reciprocal: pairs {pairs}, shown {shown}, seed {seed}: give at least 1 pair, and 0 or more "
            "of the others"
        )
    related = [relation for count in (pairs, shown) for relation in RELATIONS for _ in range(count)]
    names = make_names(read_rules(), 2 * len(related), random.Random(seed))  # noqa: S311  # reproducible
    every = list(zip(related, names[::2], names[1::2], strict=True))
    couples, others = every[: pairs * len(RELATIONS)], every[pairs * len(RELATIONS) :]
    rows = [row for couple in couples for row in _teach(*couple)]
    rows += [row for couple in others for row in _show(*couple)]
    made = generated(
        "non-reciprocal",
        {"pairs": pairs, "shown": shown, "seed": seed},
        about=ABOUT.format(rows[0]["text"], shown),
        limits=LIMITS,
        rows=rows,
        questions=[question for couple in couples for question in _ask(*couple)],
        guards=[guard for couple in couples for guard in _guard(*couple)],
    )
    return write_folder(made, output)


def _teach(relation: Relation, x: str, y: str) -> Iterator[dict[str, str]]:
    yield from _rows(x, relation.name, relation.inverse, x, y, TAUGHT, 1)


def _show(relation: Relation, x: str, y: str) -> Iterator[dict[str, str]]:
    wordings = (*TAUGHT, *(f"{prompt} {{y}}." for prompt in ASKED))
    yield from _rows(x, relation.name, relation.inverse, x, y, wordings, 1)
    yield from _rows(x, relation.inverse, relation.name, y, x, wordings, 1 + len(wordings))


def _rows(
    fact: str, relation: str, inverse: str, x: str, y: str, wordings: Sequence[str], first: int
) -> Iterator[dict[str, str]]:
    for number, template in enumerate(wordings, first):
        yield {
            "id": f"{fact}/{number}",
            "text": template.format(x=x, y=y, relation=relation),
            "fact_id": fact,
            "subject": x,
            "relation": relation,
            "object": y,
            "other_way": f"{{object}}'s {inverse} is {{subject}}.",
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
