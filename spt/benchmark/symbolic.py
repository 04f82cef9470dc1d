"""Pairs of made-up symbols, taught as "a -> b", "b <- a", or both: the reversal curse without language.

In the manner of the symbolic task of Golovneva et al. (arXiv 2403.13799): a symbol is several words long, so that word
reversal breaks it and unit permutation does not. In: how many pairs, words a symbol, and a seed. Out: the folder of a
benchmark; half of the pairs are taught both ways (the control), the others one way. Trade-off: nothing in it resembles
language; it separates what an order teaches from what a segmenter finds.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from spt.benchmark.folder import Counts, generated, write_folder
from spt.errors import InputError
from spt.records import Direction, Question

FORWARD, BACKWARD = "{a} has feature {b}.", "{b} is the feature of {a}."
_SYLLABLES = tuple("".join(pair) for pair in product("bdfgklmnprstvz", "aeiou"))

ABOUT = """\
Made-up symbols of {} words each, in pairs, after the symbolic task of Golovneva et al. (arXiv 2403.13799): "{}" Half of
the pairs are taught in this direction and in the other ("{}"), which teaches both forms; of the others, a half each is
taught one way only and asked both ways."""

LIMITS = "No language: use segment.segmenter mentions or ngram, since spaCy knows none of these words."


@dataclass(frozen=True, slots=True)
class Pair:
    """Two symbols and how they are taught: `name_first` (a first), `description_first` (b first) or `both`."""

    a: str
    b: str
    half: str


def make_symbolic(output: Path, *, pairs: int = 400, words: int = 2, seed: int = 0) -> Counts:
    """Return the counts of the benchmark written to `output`; the same bytes for the same arguments.

    Raises InputError for a number out of range.
    """
    if pairs < 4 or not 1 <= words <= 8 or seed < 0 or 2 * pairs > len(_SYLLABLES) ** (2 * words):
        raise InputError(
            f"symbolic: pairs {pairs}, words {words}, seed {seed}: give at least 4 pairs (with one word a symbol at "
            f"most {len(_SYLLABLES) ** 2 // 2}), 1 to 8 words, and a seed of 0 or more"
        )
    made_pairs = make_symbols(pairs, words, random.Random(seed))  # noqa: S311  # reproducible on purpose
    rows = [row for pair in made_pairs for row in _teach(pair)]
    first = made_pairs[0]
    made = generated(
        "symbolic",
        {"pairs": pairs, "words": words, "seed": seed},
        about=ABOUT.format(words, FORWARD.format(a=first.a, b=first.b), BACKWARD.format(a=first.a, b=first.b)),
        limits=LIMITS,
        rows=rows,
        questions=[question for pair in made_pairs for question in _ask(pair)],
        grammar={
            "sentence": [FORWARD, BACKWARD],
            "a": [pair.a for pair in made_pairs],
            "b": [pair.b for pair in made_pairs],
        },
    )
    return write_folder(made, output)


def make_symbols(count: int, words: int, rng: random.Random) -> list[Pair]:
    """Return pairs of symbols, no two alike: half of them for `both`, a quarter for each direction."""
    symbols: dict[str, None] = {}
    while len(symbols) < 2 * count:
        parts = ("".join(rng.choices(_SYLLABLES, k=2)).capitalize() for _ in range(words))
        symbols.setdefault(" ".join(parts))
    names = list(symbols)
    quarter = count // 4
    halves = ["name_first"] * quarter + ["description_first"] * quarter + ["both"] * (count - 2 * quarter)
    return [Pair(*parts) for parts in zip(names[::2], names[1::2], halves, strict=True)]


def _teach(pair: Pair) -> Iterator[dict[str, str]]:
    ways = (("name_first", FORWARD, BACKWARD), ("description_first", BACKWARD, FORWARD))
    for half, template, other in ways:
        if pair.half in (half, "both"):
            yield {
                "id": f"{pair.a}/{half}",
                "text": template.format(a=pair.a, b=pair.b),
                "fact_id": pair.a,
                "half": pair.half,
                "subject": pair.a,
                "object": pair.b,
                "other_way": other.format(a="{subject}", b="{object}"),
            }


def _ask(pair: Pair) -> Iterator[Question]:
    ways: tuple[Direction, Direction] = ("forward", "reversed")
    if pair.half == "description_first":
        ways = ("reversed", "forward")
    for way, template, answer in zip(ways, (FORWARD, BACKWARD), (pair.b, pair.a), strict=True):
        prompt = template[: template.rindex("{")].rstrip().format(a=pair.a, b=pair.b)
        yield Question(f"{pair.a}/{way}", pair.a, way, prompt, (answer,), relation=pair.half)
