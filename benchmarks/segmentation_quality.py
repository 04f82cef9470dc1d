"""How well segmenters cut, and that what they cut rejoins: the part of `segmentation.py` that no clock measures.

In: `--shared` with sentences that two annotators cut, public corpora and the paper's own segmentation; without it, the
sentences of our own tests. Out: rows of the table. Trade-off: names are looked up by the benchmark's own list, not by
any recogniser, so that a segmenter is not measured by what it uses itself.
"""

import csv
import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from spt.config import Segment
from spt.preprocess.compare import read_joined
from spt.preprocess.counts import Counts
from spt.records import Record, Segmentation
from spt.segment import SEGMENTERS, make_segmenter
from spt.segment.agreement import agreement

OWN = Path(__file__).parents[1] / "tests/segment/own_gold.jsonl"
ASKING = ("assistant", "hybrid")
Row = tuple[str, str, str]
"""What is measured, what it must reach, what was measured."""


def records(texts: list[str]) -> list[Record]:
    return [Record(str(n), text, "benchmark", n + 1) for n, text in enumerate(texts)]


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def mean_f1(cuts: list[tuple[int, ...]], rows: list[dict]) -> float:
    keys = [key for key in rows[0] if key.startswith("cuts")]
    return statistics.mean(agreement((c, row[key]) for c, row in zip(cuts, rows, strict=True)).f1 for key in keys)


def chunks_and_entities(texts: list[str]) -> list[tuple[int, ...]]:
    """Return the cuts of the simplest parser-based segmenter: noun chunks, entities, and what stands between them."""
    nlp = make_segmenter(Segment())._pipeline.nlp
    found = []
    for doc in nlp.pipe(texts):
        spans = [(span.start_char, span.end_char) for span in (*doc.noun_chunks, *doc.ents)]
        inside = {offset for start, end in spans for offset in range(start + 1, end)}
        edges = {edge - (edge == start) for start, end in spans for edge in (start, end)} - inside
        found.append(tuple(sorted(edge for edge in edges if 0 < edge < len(doc.text) and doc.text[edge] == " ")))
    return found


def quality(shared: Path | None) -> Iterator[Row]:
    sets = {f"{len(rows)} of our own ({what})": rows for what, rows in own_sets()}
    if shared is not None:
        gold = read_rows(shared / "gold/segmentation_dev.jsonl")
        sets = {f"{len(gold)} with two annotators": gold, **sets}
    for name, rows in sets.items():
        texts = [row["text"] for row in rows]
        for label, settings in {"spacy": Segment(), "spacy, fast": Segment(fast=True)}.items():
            cuts = [row.cuts for row in make_segmenter(settings).segment(records(texts))]
            yield f"{label}: mean F1 on {name}", ">= 0.92" if label == "spacy" else "", f"{mean_f1(cuts, rows):.3f}"
        yield f"noun chunks and entities: {name}", "", f"{mean_f1(chunks_and_entities(texts), rows):.3f}"
        if "cuts_b" in rows[0]:
            both = agreement((row["cuts_a"], row["cuts_b"]) for row in rows).f1
            yield "the annotators with each other", "", f"{both:.3f}"


def own_sets() -> Iterator[tuple[str, list[dict]]]:
    rows = read_rows(OWN)
    yield "rules were improved on them", [row for row in rows if row["batch"] == 1]
    yield "written after the rules", [row for row in rows if row["batch"] == 2]


def person_description(shared: Path) -> tuple[list[str], set[str]]:
    folder = shared / "data/person_description"
    texts = [row["prompt"] + row["completion"] for row in read_rows(folder / "all_prompts_train.jsonl")]
    tests = [row for path in folder.glob("*_test.jsonl") for row in read_rows(path)]
    named = (re.match(r"[A-Z][a-z]+ [A-Z][a-z]+", row["completion"].strip()) for row in tests)
    return texts, {match[0] for match in named if match}


def with_names(row: Segmentation, names: set[str], pattern: str | None = None) -> Segmentation:
    """Return the row as if its segmenter had seen these names, so that the manifest's own counting counts them."""
    found = re.finditer(pattern or "|".join(map(re.escape, sorted(names))), row.text)
    spans = tuple(match.span() for match in found)
    return Segmentation(row.id, row.text, row.cuts, row.sentences, row.segmenter, names=spans)


def names_kept(shared: Path) -> Iterator[Row]:
    texts, names = person_description(shared)
    rows = make_segmenter(Segment()).segment(records(texts))
    counted = Counts.of([with_names(row, names) for row in rows]).entities
    titles = Counts.of([with_names(row, names, r'"[^"]{1,90}"') for row in rows]).entities
    cut = counted["seen"] - counted["whole"] + titles["seen"] - titles["whole"]
    seen = f"{counted['seen']:,} names, {titles['seen']:,} titles"
    yield "names and quoted titles cut, Person Description", "0", f"{cut} of {seen}"
    share = f"{counted['alone'] / counted['seen']:.1%} ({counted['alone']:,} of {counted['seen']:,})"
    yield f"mentions of its {len(names)} names alone in their unit", ">= 95%", share
    paper = read_joined(shared / "data/paper_segmentation/person_description.txt", texts)
    (cuts,) = paper.segmentations.values()
    theirs = [Segmentation("", text, tuple(sorted(cut)), (0,), "") for text, cut in cuts.items()]
    counted = Counts.of([with_names(row, names) for row in theirs]).entities
    share = f"{counted['alone'] / counted['seen']:.1%} ({counted['alone']:,} of {counted['seen']:,})"
    yield f"the same in the paper's output ({len(theirs):,} of {len(texts):,} rows exact)", "", share


def all_texts(shared: Path) -> list[str]:
    texts: dict[str, None] = {}
    for path in sorted((shared / "data").glob("*/*")):
        if path.suffix == ".jsonl":
            texts |= dict.fromkeys(row["prompt"] + row["completion"] for row in read_rows(path))
        elif path.suffix == ".csv":
            rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
            texts |= dict.fromkeys(f"{row['child']}'s {row['parent_type']} is {row['parent']}." for row in rows)
        else:
            texts |= dict.fromkeys(path.read_text(encoding="utf-8").splitlines())
    return list(texts)


def exactness(shared: Path) -> Iterator[Row]:
    texts = all_texts(shared)
    for name in SEGMENTERS:
        if name not in ASKING:
            rows = make_segmenter(Segment(segmenter=name)).segment(records(texts))
            exact = sum("".join(row.units) == text for row, text in zip(rows, texts, strict=True))
            yield f"{name}: rows that rejoin exactly", "100%", f"{exact / len(texts):.0%} of {len(texts):,}"
