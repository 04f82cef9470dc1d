"""How good, exact and fast the segmenters are, side by side in one run.

    python benchmarks/segmentation.py --shared ../shared
    python benchmarks/segmentation.py --shared ../shared --assistant models/SmolLM2-135M-Instruct.gguf
    python benchmarks/segmentation.py --memory 1000000          # resident memory alone, over so many sentences

`--shared` is a folder with `gold/` (sentences that two annotators cut) and `data/` (public corpora, and the paper's
own segmentation); without it, only what needs neither is measured. Speed against bare spaCy is in CPU time of one
thread, so that a busy machine does not distort it, and so are the ratios of the assistant's modes where the model runs
on the CPU (on an accelerator read them by the clock); speed with two processes is in wall-clock time and needs two
idle cores (`--no-speed` leaves out the first and the last).
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

os.environ.setdefault("OMP_NUM_THREADS", "1")

from rich.console import Console
from rich.table import Table
from segmentation_quality import (
    OWN,
    Row,
    exactness,
    mean_f1,
    names_kept,
    own_sets,
    person_description,
    quality,
    read_rows,
    records,
)

from spt.assistant.cache import ReplyCache
from spt.config import Segment
from spt.preprocess.workers import cutter
from spt.records import Segmentation
from spt.segment import Segmenter, make_segmenter


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


def assistants(model: str, shared: Path | None, count: int, rounds: int = 3) -> Iterator[Row]:
    """Each mode on the same sentences, in turns, nothing cached."""
    gold = (read_rows(shared / "gold/segmentation_dev.jsonl") if shared is not None else read_rows(OWN))[:count]
    texts = [row["text"] for row in gold]
    spent: dict[str, list[tuple[float, float]]] = {}
    found: dict[str, list[Segmentation]] = {}
    with tempfile.TemporaryDirectory() as folder:
        asked = {"model": model, "cache": f"{folder}/warm"}
        modes = {
            mode: make_segmenter(Segment(segmenter="assistant", assistant={**asked, "mode": mode}))
            for mode in ("generate", "constrained", "score")
        }
        for segmenter in modes.values():
            segmenter.segment(records(["Ada Brown sang."]))  # the model is loaded
        for number in range(rounds):
            for mode, segmenter in modes.items():
                segmenter._assistant.cache = ReplyCache(f"{folder}/{number}")
                started = time.monotonic(), time.process_time()
                found[mode] = segmenter.segment(records(texts))
                spent.setdefault(mode, []).append((time.monotonic() - started[0], time.process_time() - started[1]))
    for mode, rows in found.items():
        own = sum(row.fallback is None for row in rows)
        exact = all("".join(row.units) == text for row, text in zip(rows, texts, strict=True))
        f1 = mean_f1([row.cuts for row in rows], gold)
        clock, cpu = (len(texts) / statistics.median(seconds) for seconds in zip(*spent[mode], strict=True))
        said = f"{cpu:.2f} texts/s of CPU ({clock:.2f} by the clock), {own} of {len(texts)} its own cuts, F1 {f1:.3f}"
        yield f"assistant, {mode}", "exact" if mode != "generate" else "", said + ("" if exact else ", NOT EXACT")
    for mode, target in {"score": ">= 8", "constrained": ">= 2"}.items():
        pairs = list(zip(spent["generate"], spent[mode], strict=True))
        clock, cpu = (statistics.median(slow[of] / fast[of] for slow, fast in pairs) for of in (0, 1))
        yield f"{mode} / generate", target, f"{cpu:.1f} in CPU time ({clock:.1f} by the clock)"


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
