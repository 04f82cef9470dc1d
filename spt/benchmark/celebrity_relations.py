"""Celebrities and their parents (Berglund et al., arXiv 2309.12288, experiment 2) → our corpus and questions.

In: parent_child_pairs.csv. Out: a sentence a pair, a forward question a pair, a reversed question a parent, with
every child as a target. Trade-off: people known from pretraining, so a score says what fine-tuning adds only beside
the model's score before it.
"""

from collections import defaultdict
from pathlib import Path

from spt.benchmark.folder import Counts, Made, hash_inputs, read_source, refuse, write_folder
from spt.benchmark.hub import LICENCE
from spt.corpus import Row
from spt.records import Question

FILE = "parent_child_pairs.csv"
FILES = (FILE,)
PARENTS = ("mother", "father")

ABOUT = """\
Celebrities and their parents, from Berglund et al., "The Reversal Curse" (arXiv 2309.12288, experiment 2). The corpus
says who somebody's mother or father is; forward questions ask for the parent, reversed ones for a child. `fact_id` is
the parent, so that questions that share an answer are not counted as independent. Rows keep `can_reverse`: whether
GPT-4 named the child when the data set was made."""

LIMITS = """\
Real people, as the source lists them: some parents stand there as both mother and father. Where a parent has several
children in the set, each is a target; children outside the set are not. Forward prompts are the beginnings of
training sentences, since the source has one wording a direction."""


def read_pairs(source: Path) -> tuple[list[Row], int]:
    """Return the rows with unlike child, parent and kind, and how many exact duplicates were left out.

    Raises MissingError or QuestionError.
    """
    pairs: dict[tuple[str, str, str], Row] = {}
    rows = list(read_source(source, FILE, ("child", "parent", "parent_type")))
    for row in rows:
        values = row.values
        if values["parent_type"] not in PARENTS:
            raise refuse(row, f"parent_type {values['parent_type']!r} is neither mother nor father")
        if not (values["child"].strip() and values["parent"].strip()):
            raise refuse(row, "child or parent is blank")
        pairs.setdefault((values["child"], values["parent"], values["parent_type"]), row)
    return list(pairs.values()), len(rows) - len(pairs)


def make_celebrity_relations(source: Path, output: Path) -> Counts:
    """Return the counts of the benchmark written to `output` from the published file in `source`.

    Raises InputError.
    """
    pairs, duplicates = read_pairs(source)
    children: dict[str, list[Row]] = defaultdict(list)
    for row in pairs:
        children[row.values["parent"]].append(row)
    siblings = [len({row.values["child"] for row in rows}) for rows in children.values()]
    titles = [len({row.values["parent_type"] for row in rows}) for rows in children.values()]
    made = Made(
        name="celebrity-relations",
        headline="startswith",
        command="spt benchmark make celebrity-relations --from SOURCE --output FOLDER",
        licence=LICENCE,
        about=ABOUT,
        limits=LIMITS,
        rows=[_train_row(row) for row in pairs],
        questions=[*map(_forward, pairs), *map(_reversed, children.values())],
        inputs=hash_inputs(source, FILES),
        notes={
            "parents with several children": sum(number > 1 for number in siblings),
            "pairs of such parents": sum(number for number in siblings if number > 1),
            "parents listed as both mother and father": sum(number > 1 for number in titles),
        },
        dropped={"exact duplicate": duplicates},
    )
    return write_folder(made, output)


def _train_row(row: Row) -> dict[str, str]:
    child, parent, kind = (row.values[name] for name in ("child", "parent", "parent_type"))
    return {
        "id": row.place,
        "prompt": f"{child}'s {kind} is",
        "completion": f" {parent}.",
        "fact_id": parent,
        "relation": kind,
        "can_reverse": row.values.get("can_reverse", ""),
    }


def _forward(row: Row) -> Question:
    child, parent, kind = (row.values[name] for name in ("child", "parent", "parent_type"))
    return Question(f"{row.place}/forward", parent, "forward", f"{child}'s {kind} is", (parent,), relation=kind)


def _reversed(rows: list[Row]) -> Question:
    parent, kind = rows[0].values["parent"], rows[0].values["parent_type"]
    targets = tuple(dict.fromkeys(row.values["child"] for row in rows))
    return Question(f"{rows[0].place}/reversed", parent, "reversed", f"{parent}'s child is", targets, relation=kind)
