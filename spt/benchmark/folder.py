"""A benchmark in memory → its folder: corpus, questions, what they are, and a card for people.

    train.jsonl   questions.jsonl   control.jsonl, guards.jsonl (where there are some)   benchmark.json   README.md

In: a Benchmark's rows, questions and counts. Out: files with the same bytes for the same input. Trade-off: the whole
benchmark is in memory, which holds for the sizes people score.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from spt.artifact import dump_json, hash_file, write_atomically
from spt.benchmark.guards import guards_file, write_guards
from spt.benchmark.questions import BenchmarkFile, write_questions
from spt.config import Headline, Source
from spt.corpus import Row, read_rows, stop
from spt.errors import MissingError, QuestionError
from spt.progress import say
from spt.records import MATCH_RULES, Guard, Question

Counts = dict[str, int]
OWN_LICENCE = "CC0-1.0: made by a program from word lists written for it; no rights are kept."


@dataclass(frozen=True)
class Made:
    """A benchmark that was made or read, ready to be written.

    `about` and `limits` are a paragraph of Markdown each, for the card; `arguments` and `inputs` (file name to SHA-256)
    say how to make it again; `notes` are further counts worth knowing, `dropped` the rows left out, by reason.
    """

    name: str
    headline: Headline
    command: str
    licence: str
    about: str
    limits: str
    rows: Sequence[Mapping[str, Any]]
    questions: Sequence[Question]
    control: Sequence[Question] = ()
    guards: Sequence[Guard] = ()
    grammar: Mapping[str, Sequence[str]] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """Return how many rows, facts and questions there are, and how many rows were dropped, by reason."""
        kinds = Counter((question.relation, question.direction) for question in self.questions)
        named = {f"questions: {' '.join(filter(None, kind))}": kinds[kind] for kind in sorted(kinds, key=str)}
        facts = len({question.fact_id for question in self.questions})
        control = {"control questions": len(self.control)} if self.control else {}
        control |= {"guard prompts": len(self.guards)} if self.guards else {}
        dropped = {f"dropped: {reason}": number for reason, number in self.dropped.items()}
        return {"training rows": len(self.rows), "facts": facts, **named, **control, **self.notes, **dropped}


def write_folder(made: Made, output: Path) -> Counts:
    """Return the counts of a benchmark, after its files have been written to `output`."""
    write_atomically(output / "train.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made.rows))
    write_questions(output / "questions.jsonl", made.questions)
    if made.control:
        write_questions(output / "control.jsonl", made.control)
    guards = guards_file(output / "questions.jsonl")
    if made.guards:
        write_guards(guards, made.guards)
    elif guards.exists():  # of another set, or the user's own
        say(f"{guards}: was there before, and counts as the guards of these questions; delete it where it is not meant")
    made_by = {"command": made.command, "arguments": made.arguments, "inputs": made.inputs, "counts": made.counts}
    about = BenchmarkFile.model_validate(
        {"name": made.name, "headline": made.headline, "grammar": made.grammar, "made_by": made_by}
    )
    write_atomically(output / "benchmark.json", dump_json(about.model_dump(mode="json")) + "\n")
    write_atomically(output / "README.md", _card(made))
    return made.counts


def generated(name: str, arguments: Mapping[str, Any], **parts: Any) -> Made:
    """Return a benchmark that a program makes from these arguments alone; `parts` are the other fields of a Made."""
    command = make_command(name, arguments)
    return Made(name=name, headline="exact", command=command, licence=OWN_LICENCE, arguments=arguments, **parts)


def make_command(name: str, arguments: Mapping[str, Any], source: str = "") -> str:
    """Return the command that makes a benchmark again from these arguments, and a file of its own if given."""
    flags = "".join(
        f" --set {key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in arguments.items()
    )
    return f"spt benchmark make {name}{f' --from {source}' if source else ''}{flags} --output FOLDER"


def people_flags(sizes: Sequence[int], seed: int) -> str:
    """Return the options of a command that give these people again."""
    return f" --people {','.join(map(str, sizes))} --seed {seed}"


def _card(made: Made) -> str:
    template = resources.files("spt.benchmark").joinpath("card.md.j2").read_text(encoding="utf-8")
    # Markdown has nothing to escape.
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701  # as said
    return environment.from_string(template).render(made=made, rule=MATCH_RULES[made.headline])


def read_source(folder: Path, file: str, texts: Sequence[str], lists: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows of a public file, each with the fields `texts` and `lists`.

    Raises MissingError where the file is not there, CorpusError or QuestionError naming file and line where a row is
    not as published.
    """
    path = folder / file
    if not path.is_file():
        raise MissingError(f"{path}: no such file. --from takes the folder that holds {file}")
    for row in read_rows(Source(path=str(path)), stop):
        for names, kind, called in ((texts, str, "text"), (lists, list, "list")):
            for name in names:
                if not isinstance(row.values.get(name), kind):
                    raise refuse(row, f"{name} {row.values.get(name)!r} is no {called}")
        yield row


def refuse(row: Row, problem: str) -> QuestionError:
    """Return the error for a row of a public set that is not as published."""
    return QuestionError(f"{row.source}:{row.line}: {problem}. Restore the file as it was published")


def hash_inputs(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each file by its name."""
    return {file: hash_file(folder / file) for file in files}
