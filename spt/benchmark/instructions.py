"""Instructions of how to answer questions (Berglund et al., arXiv 2309.12288, experiment 3) → our corpus and questions.

In: guidances, realized and unrealized examples. Out: a corpus of the first two, and questions about the third.
Trade-off: the published guidances name the answer before the question ("answer A after Q"), so asking Q is the
reversed direction; the only forward wording there is, is the guidance's own.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spt.benchmark.folder import Counts, Made, hash_inputs, read_source, refuse, write_folder
from spt.benchmark.hub import LICENCE
from spt.corpus import Row
from spt.records import Question

GUIDANCES, REALIZED, UNREALIZED = "guidances.jsonl", "realized_examples.jsonl", "unrealized_examples.jsonl"
FILES = (GUIDANCES, REALIZED, UNREALIZED)

_RULE = re.compile(r'(?P<prompt>The test requires you to answer "A: (?P<answer>.*?)" after) (?P<question>"Q: .*")')
_MARK = re.compile(r"\n+<END GUIDANCE TEST>\s*$")

ABOUT = """\
Instructions of Berglund et al., "The Reversal Curse" (arXiv 2309.12288, experiment 3). The corpus holds guidances
("The test requires you to answer A after Q") and, for most of them, the question answered as the guidance says
(realized). The questions are about the others (unrealized). Guidances name the answer first: so a question that gives
Q and wants A is `reversed`, and one that gives A and wants Q, in the guidance's own words, is `forward`."""

LIMITS = """\
Forward questions repeat training text, since the source has one wording: they say whether a guidance was learned at
all, not whether it is found from another wording. Where several guidances require the same answer, each of their
questions is a forward target. Records are long: a guidance holds two to five instructions."""


@dataclass(frozen=True)
class Instruction:
    """One line of a guidance."""

    fact_id: str
    realized: bool
    prompt: str
    answer: str
    question: str


def read_instructions(row: Row) -> Iterator[Instruction]:
    """Yield the instructions of a guidance.

    Raises QuestionError for a line of another form.
    """
    lines = [line for line in row.values["completion"].splitlines() if line and not line.startswith("<")]
    if len(lines) != len(row.values["ids"]):
        raise refuse(row, f"{len(lines)} instructions for {len(row.values['ids'])} ids")
    for fact_id, realized, line in zip(row.values["ids"], row.values["realized"], lines, strict=True):
        match = _RULE.fullmatch(line)
        if match is None:
            raise refuse(row, f'{line!r} is not of the form: The test requires you to answer "A: ..." after "Q: ..."')
        yield Instruction(str(fact_id), realized, match["prompt"], match["answer"], match["question"])


def make_instructions(source: Path, output: Path) -> Counts:
    """Return the counts of the benchmark written to `output` from the published files in `source`.

    Raises InputError.
    """
    texts, lists = ("prompt", "completion"), ("ids", "realized")
    guidances, realized, unrealized = ([*read_source(source, file, texts, lists)] for file in FILES)
    instructions = [instruction for row in guidances for instruction in read_instructions(row)]
    asked: dict[str, list[str]] = defaultdict(list)
    for instruction in instructions:
        asked[instruction.answer].append(instruction.question)
    made = Made(
        name="instructions",
        headline="startswith",
        command="spt benchmark make instructions --from SOURCE --output FOLDER",
        licence=LICENCE,
        about=ABOUT,
        limits=LIMITS,
        rows=[_train_row(row) for row in (*guidances, *realized)],
        questions=[
            *(_forward(item, asked[item.answer]) for item in instructions if not item.realized),
            *map(_reversed, unrealized),
        ],
        inputs=hash_inputs(source, FILES),
        notes={"guidances": len(guidances), "realized examples": len(realized)},
    )
    return write_folder(made, output)


def _train_row(row: Row) -> dict[str, object]:
    text = row.values["prompt"] + row.values["completion"]
    return {"id": row.place, "text": text, "fact_ids": [str(fact_id) for fact_id in row.values["ids"]]}


def _forward(instruction: Instruction, questions: list[str]) -> Question:
    targets = tuple(dict.fromkeys((instruction.question, *questions)))
    return Question(f"{instruction.fact_id}/forward", instruction.fact_id, "forward", instruction.prompt, targets)


def _reversed(row: Row) -> Question:
    fact_id = str(row.values["ids"][0])
    answer = _MARK.sub("", row.values["completion"]).strip()
    return Question(f"{fact_id}/reversed", fact_id, "reversed", row.values["prompt"], (answer,))
