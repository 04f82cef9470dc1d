"""How good, exact and fast the segmenters are, side by side in one run.

    python benchmarks/segmentation.py --shared ../shared
    python benchmarks/segmentation.py --shared ../shared --assistant models/SmolLM2-135M-Instruct.gguf
    python benchmarks/segmentation.py --memory 1000000          # resident memory alone, over so many sentences

`--shared` is a folder with `gold/` (sentences that two annotators cut) and `data/` (public corpora, and the paper's
own segmentation); without it, only what needs neither is measured. Speed against bare spaCy is in CPU time of one
thread, so that a busy machine does not distort it; speed with two processes is in wall-clock time and needs two idle
cores (`--no-speed` leaves both out).
"""

import argparse
import csv
import json
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

os.environ.setdefault("OMP_NUM_THREADS", "1")

from rich.console import Console
from rich.table import Table

from spt.config import Segment
from spt.preprocess.compare import read_joined
from spt.preprocess.counts import Counts
from spt.preprocess.workers import cutter
from spt.records import Record, Segmentation
from spt.segment import SEGMENTERS, Segmenter, make_segmenter
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


def speed_texts(shared: Path | None, count: int) -> list[str]:
    texts = (
        person_description(shared)[0] if shared is not None else [row["text"] for _, rows in own_sets() for row in rows]
    )
    return [texts[n % len(texts)] for n in range(count)]


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def speed(shared: Path | None, count: int = 1536, rounds: int = 5) -> Iterator[Row]:
    texts = speed_texts(shared, count)
    for label, settings in {"spacy": Segment(), "spacy, fast": Segment(fast=True)}.items():
        segmenter = make_segmenter(settings)
        nlp = segmenter._pipeline.nlp

        def bare(nlp=nlp) -> None:
            for start in range(0, count, 256):
                with nlp.memory_zone():
                    for _ in nlp.pipe(texts[start : start + 256], batch_size=256):
                        pass

        def cut(segmenter: Segmenter = segmenter) -> None:
            segmenter.segment(records(texts))

        bare()
        # Measured in turns, so that a drift of the machine falls on both.
        pairs = [(cpu_seconds(bare), cpu_seconds(cut)) for _ in range(rounds)]
        ratio = statistics.median(plain / ours for plain, ours in pairs)
        rate = count / statistics.median(ours for _, ours in pairs)
        yield (
            f"{label}: throughput / bare nlp.pipe, same components",
            ">= 0.93",
            f"{ratio:.3f} ({rate:.0f} texts/s of CPU)",
        )


def processes(shared: Path | None, count: int = 6144) -> Iterator[Row]:
    texts = speed_texts(shared, count)
    rates = {}
    for number in (1, 2):
        settings = Segment(processes=number)
        with cutter(settings, make_segmenter(settings)) as cut:
            list(cut(records(texts[:512])))  # workers start, pipelines load
            started = time.monotonic()
            list(cut(records(texts)))
            rates[number] = count / (time.monotonic() - started)
    yield "two processes / one", ">= 1.8", f"{rates[2] / rates[1]:.2f} ({rates[1]:.0f}, {rates[2]:.0f} texts/s)"


def assistants(model: str, shared: Path | None, count: int) -> Iterator[Row]:
    """Each mode on the same sentences, nothing cached."""
    import tempfile

    gold = read_rows(shared / "gold/segmentation_dev.jsonl") if shared is not None else read_rows(OWN)
    gold = gold[:count]
    texts = [row["text"] for row in gold]
    rates: dict[str, float] = {}
    for mode in ("generate", "constrained", "score"):
        with tempfile.TemporaryDirectory() as cache:
            asked = {"model": model, "mode": mode, "cache": cache}
            segmenter = make_segmenter(Segment(segmenter="assistant", assistant=asked))
            segmenter.segment(records(["Ada Brown sang."]))  # the model is loaded
            started = time.monotonic()
            rows = segmenter.segment(records(texts))
            rates[mode] = len(texts) / (time.monotonic() - started)
        own = sum(row.fallback is None for row in rows)
        exact = all("".join(row.units) == text for row, text in zip(rows, texts, strict=True))
        f1 = mean_f1([row.cuts for row in rows], gold)
        said = f"{rates[mode]:.2f} texts/s, {own} of {len(texts)} its own cuts, F1 {f1:.3f}"
        yield f"assistant, {mode}", "exact" if mode != "generate" else "", said + ("" if exact else ", NOT EXACT")
    yield "score / generate", ">= 8", f"{rates['score'] / rates['generate']:.1f}"
    yield "constrained / generate", ">= 2", f"{rates['constrained'] / rates['generate']:.1f}"


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def invented(count: int) -> Iterator[str]:
    """Sentences whose names are all different, so that a store of strings would grow with them."""
    generator = Random(0)
    syllables = ["ka", "ro", "min", "tel", "va", "dor", "shi", "ul", "fen", "gra", "po", "lys", "bex", "nor", "qui"]

    def name() -> str:
        return "".join(generator.choices(syllables, k=generator.randint(2, 5))).capitalize()

    for number in range(count):
        born = f"who was born in {name()} in {1000 + number % 1000}"
        yield f"{name()} {name()}, {born}, wrote the {name().lower()} of {name()}."


def memory(count: int) -> Iterator[Row]:
    settings = Segment()
    texts = invented(count)
    step = max(count // 20, 256)
    seen: list[float] = []
    with cutter(settings, make_segmenter(settings)) as cut:
        for done in range(0, count, step):
            batch = list(islice(texts, step))
            for _ in cut(records(batch)):
                pass
            seen.append(resident_mib())
            Console(stderr=True).print(f"{done + len(batch):,} sentences: {seen[-1]:.0f} MiB", highlight=False)
    warm = seen[1] if len(seen) > 1 else seen[0]
    yield (
        f"resident memory over {count:,} sentences",
        "flat",
        f"{warm:.0f} MiB after a tenth, {seen[-1]:.0f} at the end",
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, help="folder with gold/ and data/")
    parser.add_argument("--assistant", metavar="MODEL", help="a local model: measure the assistant's modes too")
    parser.add_argument("--sentences", type=int, default=24, help="sentences a mode of the assistant cuts (default 24)")
    parser.add_argument("--memory", type=int, metavar="N", help="measure memory over N sentences, and nothing else")
    parser.add_argument("--no-speed", action="store_true", help="leave out what a busy machine distorts")
    given = parser.parse_args()
    if given.memory:
        rows = list(memory(given.memory))
    else:
        rows = list(quality(given.shared))
        if given.shared is not None:
            rows += [*names_kept(given.shared), *exactness(given.shared)]
        if not given.no_speed:
            rows += [*speed(given.shared), *processes(given.shared)]
        if given.assistant:
            rows += assistants(given.assistant, given.shared, given.sentences)
        else:
            rows.append(("assistant: its three modes", "", "not measured: give --assistant MODEL"))
    table = Table("measured", "target", "found", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
