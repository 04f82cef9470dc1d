"""Question sets and corpora: makers of ours, readers of the public ones, and the file they are scored from."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spt.benchmark import celebrity_relations, instructions, person_description
from spt.benchmark.bios import make_bios
from spt.benchmark.fictional_people import make_fictional_people
from spt.benchmark.folder import Counts
from spt.benchmark.grammar import Grammar
from spt.benchmark.hub import REPOSITORY, download
from spt.benchmark.non_reciprocal import make_non_reciprocal
from spt.benchmark.questions import QuestionSet, read_questions, write_questions
from spt.benchmark.symbolic import make_symbolic
from spt.benchmark.wiki_reversal import make_wiki_reversal
from spt.config.explain import nearest
from spt.errors import InputError

__all__ = [
    "BENCHMARKS", "Benchmark", "Grammar", "QuestionSet", "fetch_benchmark", "make_benchmark", "read_questions",
    "write_questions",
]  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    """A line of `spt benchmark list`, and how it is made.

    `options` are what `make` takes besides `output`; `files` what a public set is read from (none: it is generated, or
    made of `corpus`, a file or folder of the user's own).
    """

    description: str
    source: str
    licence: str
    make: Callable[..., Counts]
    options: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    corpus: bool = False

    @property
    def fetchable(self) -> bool:
        """Return whether its files come from the Hub."""
        return bool(self.files)

    @property
    def defaults(self) -> dict[str, Any]:
        """Return its options, each with what it is where none is given."""
        parameters = inspect.signature(self.make).parameters
        return {option: parameters[option].default for option in self.options}

    def command(self, name: str) -> str:
        """Return the command that writes it under its name."""
        return f"spt benchmark {'fetch' if self.fetchable else 'make'} {name}{' --from CORPUS' if self.corpus else ''}"


def _make_fictional_people(output: Path, *, people: Sequence[int] = (50, 50, 100), seed: int = 0) -> Counts:
    name_first, description_first, both = people
    return make_fictional_people(
        output, name_first=name_first, description_first=description_first, both=both, seed=seed
    )


BENCHMARKS: Mapping[str, Benchmark] = {
    "fictional-people": Benchmark(
        "invented people, each with one description, taught from the name, from the description, or from both",
        "generated", "CC0-1.0", _make_fictional_people, ("people", "seed"),
    ),
    "bios": Benchmark(
        "invented biographies of six sentences, with extraction and inverse search, in the manner of bioS",
        "generated", "CC0-1.0", make_bios,
        ("biographies", "full_names", "people", "question_share", "seed", "shuffled"),
    ),
    "symbolic": Benchmark(
        "pairs of made-up symbols of several words, taught one way or both ways",
        "generated", "CC0-1.0", make_symbolic, ("pairs", "seed", "words"),
    ),
    "non-reciprocal": Benchmark(
        "relations that hold one way only, with the wrong inferences a cure may make as guards",
        "generated", "CC0-1.0", make_non_reciprocal, ("pairs", "shown", "seed"),
    ),
    "wiki-reversal": Benchmark(
        "passages of your own corpus, with questions after either of two names in them, in the manner of WikiReversal",
        "your corpus", "that of the corpus", make_wiki_reversal, ("pipeline", "question_share", "seed"), corpus=True,
    ),
    "person-description": Benchmark(
        "invented celebrities and their deeds (Berglund et al., experiment 1)",
        REPOSITORY, "MIT", person_description.make_person_description, ("people", "seed"), person_description.FILES,
    ),
    "celebrity-relations": Benchmark(
        "celebrities and their parents (Berglund et al., experiment 2)",
        REPOSITORY, "MIT", celebrity_relations.make_celebrity_relations, (), celebrity_relations.FILES,
    ),
    "instructions": Benchmark(
        "instructions of how to answer questions (Berglund et al., experiment 3)",
        REPOSITORY, "MIT", instructions.make_instructions, (), instructions.FILES,
    ),
}  # fmt: skip
"""Every benchmark by its name."""


def make_benchmark(name: str, output: Path, *, source: Path | None = None, **given: Any) -> Counts:
    """Return the counts of a benchmark written to `output`, read from the folder `source` where it is a public one.

    Raises InputError for an unknown name, a source that is missing or not wanted, or an option the benchmark has not.
    """
    benchmark = _find(name)
    for option, value in given.items():
        if option not in benchmark.options:
            known = f"there are {', '.join(benchmark.options)}" if benchmark.options else "it is made whole"
            raise InputError(f"{name} has no option {option}; {known}")
        _check_option(name, option, value)
    if benchmark.corpus and source is None:
        raise InputError(f"{name} is made of a corpus of your own: give --from CORPUS")
    if benchmark.fetchable and source is None:
        raise InputError(f"{name} is read from files: give --from FOLDER, or run: spt benchmark fetch {name}")
    if benchmark.fetchable or benchmark.corpus:
        return benchmark.make(source, output, **given)
    if source is not None:
        raise InputError(f"{name} is generated; leave out --from")
    return benchmark.make(output, **given)


_KINDS = {
    bool: "true or false", str: "a text", int: "a whole number", float: "a number",
    tuple: "three whole numbers (--people N,N,N)",
}  # fmt: skip


def _check_option(name: str, option: str, value: Any) -> None:
    """Raise InputError for a value that is of another type than the option's default."""
    default = _find(name).defaults[option]
    kind = tuple if default is None else type(default)
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits:
        raise InputError(f"{name}: {option} must be {_KINDS[kind]}, not {value!r}")


def fetch_benchmark(name: str, output: Path, *, revision: str | None = None, **given: Any) -> Counts:
    """Return the counts of a public benchmark written to `output`, its files downloaded from the Hub.

    Raises InputError, MissingError where the Hub is out of reach.
    """
    benchmark = _find(name)
    if not benchmark.fetchable:
        raise InputError(f"{name} is not on the Hub: run {benchmark.command(name)}")
    return make_benchmark(name, output, source=download(name, benchmark.files, revision), **given)


def _find(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        hint = nearest(name, BENCHMARKS) or f" There are {', '.join(BENCHMARKS)}."
        raise InputError(f"no benchmark {name!r}.{hint}")
    return BENCHMARKS[name]
