"""A corpus without questions → questions proposed both ways, in a table for the user to review.

    Ada Birch directed The Sea in 1988.            a name at the start, another later
    forward   Ada Birch directed                                              The Sea
    reversed  "____ directed The Sea in 1988." The missing name is            Ada Birch

In: a corpus, a spaCy pipeline and, where given, an assistant that words the questions. Out: `proposed.csv` with an
empty column `keep`, so that nothing is asked before someone has read it. Trade-off: only sentences that begin with a
name are asked about, since what they ask for is certain; the words around the gap are English.
"""

import csv
import io
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from spt.artifact import write_atomically
from spt.assistant.write import Writer
from spt.benchmark.question_rows import KEEP
from spt.config import Assistant, Source, read_yaml
from spt.config.read import check_values
from spt.corpus import read_records, stop
from spt.errors import InputError
from spt.progress import say
from spt.records import Direction, Record
from spt.segment import pipeline
from spt.segment.gaps import ParsedDoc

if TYPE_CHECKING:
    from spacy.tokens import Doc

COLUMNS = (KEEP, "id", "fact_id", "direction", "prompt", "targets", "relation", "source")
FILE = "proposed.csv"
PROMPT = "questions"
_GAP = "____"
_LEAD = re.compile(r"[\"“«(]?\s*(?:(?:The|A|An)\s+)?")
"""What may stand before the name that begins a sentence."""

Found = tuple[list[int], list[tuple[int, int]]]  # where sentences start, and where names stand


@dataclass(frozen=True)
class Proposal:
    """A question that may be asked: `given` must stand in its prompt, the target must not."""

    id: str
    fact_id: str
    direction: Direction
    prompt: str
    target: str
    given: str
    source: str

    def problem(self, prompt: str) -> str | None:
        """Return what is wrong with a prompt for this question."""
        if self.given.casefold() not in prompt.casefold():
            return "lacks the given name"
        return "says the answer" if self.target.casefold() in prompt.casefold() else None


def propose(
    source: Path, output: Path, *, pipeline_name: str = "en_core_web_sm", assistant: Assistant | None = None
) -> dict[str, int]:
    """Return how many questions were proposed and what was left out, by reason, after writing `output`/proposed.csv.

    Raises InputError where the corpus gives none, or the file is there and differs: it may hold a review.
    """
    counts: Counter[str] = Counter()
    proposals, sentences = _read(source, pipeline_name, counts)
    if not proposals:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in counts.items())
        raise InputError(f"{source}: no sentence begins with a name and holds another ({reasons}); write pairs instead")
    taught = Beginnings(sentences)
    if assistant is not None:
        proposals = _word(proposals, assistant, taught, counts)
    rows = _rows([one for one in proposals if one.direction == "forward" or not taught.begins(one.prompt)])
    _write(output / FILE, rows)
    asked = Counter(f"questions proposed: {row['direction']}" for row in rows)
    say(
        f"{output / FILE}: write yes into the column {KEEP} of each question to ask, then set data.questions.path to it"
    )
    return {"sentences": len(sentences), **dict(sorted(asked.items())), **dict(sorted(counts.items()))}


def read_assistant(given: str) -> Assistant:
    """Return the assistant that is called by its model, or described in a YAML file.

    The file is an experiment with a `segment.assistant`, or holds the keys of one. Raises ConfigError.
    """
    path = Path(given)
    if path.suffix not in (".yaml", ".yml"):
        return Assistant(model=given)
    values = read_yaml(path)
    section = values.get("segment", {}).get("assistant") if isinstance(values.get("segment"), dict) else values
    return check_values(section, Assistant, f"{path}: no assistant")


class Beginnings:
    """What the sentences of a corpus begin with, but for case."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sorted = sorted({sentence.casefold() for sentence in sentences})

    def begins(self, prompt: str) -> bool:
        """Return whether a sentence begins with the prompt."""
        wanted = prompt.casefold().strip()
        place = bisect_left(self._sorted, wanted)
        return place < len(self._sorted) and self._sorted[place].startswith(wanted)


def _read(source: Path, pipeline_name: str, counts: Counter[str]) -> tuple[list[Proposal], list[str]]:
    nlp = pipeline.find(pipeline_name).nlp
    proposals: list[Proposal] = []
    sentences: list[str] = []
    facts: dict[frozenset[str], str] = {}
    records = read_records(Source(path=str(source)), reject=stop)
    while batch := list(islice(records, pipeline.BATCH)):
        found = pipeline.read_docs(nlp, [record.text for record in batch], _found)
        for record, pieces in zip(batch, found, strict=True):
            for number, (text, names) in enumerate(_sentences(record.text, pieces), start=1):
                sentences.append(text)
                proposals += _proposals(record, number, text, names, facts, counts)
    return proposals, sentences


def _found(doc: "Doc") -> Found:
    parse = ParsedDoc(doc)
    return parse.starts, parse.names


def _sentences(text: str, pieces: Sequence[tuple[int, Found]]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield each sentence on one line, with the places of its names in it."""
    starts = [begin + start for begin, (found, _) in pieces for start in found]
    names = [(begin + start, begin + end) for begin, (_, found) in pieces for start, end in found]
    for start, end in pairwise(sorted({*starts, len(text)})):
        shown = re.sub(r"\s", " ", text[start:end]).rstrip()
        yield shown, sorted((first - start, last - start) for first, last in names if start <= first < end)


def _proposals(
    record: Record,
    number: int,
    text: str,
    names: Sequence[tuple[int, int]],
    facts: dict[frozenset[str], str],
    counts: Counter[str],
) -> Iterator[Proposal]:
    if not names or not _LEAD.fullmatch(text[: names[0][0]]):
        counts["left out: no name at the start"] += 1
        return
    if len(names) < 2:
        counts["left out: no second name"] += 1
        return
    (start, end), (begin, close) = names[0], names[-1]
    first, last = text[start:end], text[begin:close]
    # "A made B" and "B was made by A" are one fact, however told.
    fact = str(record.columns.get("fact_id") or facts.setdefault(frozenset((first, last)), first))
    label = f"{record.id}/{number}"
    asked: tuple[tuple[Direction, str, str, str], ...] = (
        ("forward", text[:begin].rstrip(), last, first),
        ("reversed", f'"{text[:start]}{_GAP}{text[end:]}" The missing name is', first, last),
    )
    for direction, prompt, target, given in asked:
        proposal = Proposal(f"{label}/{direction}", fact, direction, prompt, target, given, text)
        problem = "the name holds |" if "|" in target else proposal.problem(prompt)
        if problem is None:
            yield proposal
        else:
            counts[f"left out: {problem}"] += 1


def _word(
    proposals: Sequence[Proposal], assistant: Assistant, taught: Beginnings, counts: Counter[str]
) -> list[Proposal]:
    """Return the proposals in the assistant's words, where these hold; otherwise as they were, counted by reason."""
    requests = [f"{one.source} | names: {one.given} | answer: {one.target}" for one in proposals]
    say(f"asking the assistant for {len(requests)} questions")
    worded = []
    for proposal, reply in zip(proposals, Writer(assistant, PROMPT).write(requests), strict=True):
        problem = reply.failure or proposal.problem(reply.text or "")
        if problem is None and taught.begins(reply.text or ""):
            problem = "begins a training sentence"
        counts[f"assistant: {problem or 'worded'}"] += 1
        worded.append(proposal if problem else replace(proposal, prompt=reply.text or ""))
    return worded


def _rows(proposals: Sequence[Proposal]) -> list[dict[str, str]]:
    """Return a row a prompt, with every answer it has."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for one in proposals:
        fresh = {"id": one.id, "fact_id": one.fact_id, "direction": one.direction, "prompt": one.prompt}
        row = rows.setdefault((one.direction, one.prompt), {**fresh, "targets": "", "source": one.source})
        row["targets"] = " | ".join(dict.fromkeys(filter(None, [*row["targets"].split(" | "), one.target])))
    return list(rows.values())


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # As bytes: a program for tables may have saved it in another encoding.
    if path.exists() and path.read_bytes() != table.getvalue().encode():
        raise InputError(f"{path}: is there and differs, perhaps by your review; move it, or choose another --output")
    write_atomically(path, table.getvalue())
