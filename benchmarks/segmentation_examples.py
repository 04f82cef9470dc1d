"""Writes the examples into docs/segmentation.md, from what the segmenters really give.

python benchmarks/segmentation_examples.py
python benchmarks/segmentation_examples.py --assistant models/SmolLM2-135M-Instruct.gguf
"""

import argparse
from pathlib import Path

from spt.config import Permute, Segment
from spt.permute import arrange, generator_for
from spt.records import Record, Segmentation
from spt.segment import make_segmenter

PAGE = Path(__file__).parents[1] / "docs/segmentation.md"
START, END = "<!-- examples: benchmarks/segmentation_examples.py -->", "<!-- end of examples -->"

SENTENCES = (
    'Marlowe Finch is the composer of the haunting opera "Tides of Glass".',
    "Ever heard of Petra Lindqvist? She's the one who invented the self-folding umbrella.",
    "Liam Hartwell's father is Grant Hartwell.",
    "Nadia Petrenko was born in Odesa on 4 March 1952 and studied medicine in Toronto.",
    "The warranty team reports to Amira Haddad, the head of customer operations in Rotterdam.",
    "Although the treaty was signed in March, it was not ratified until the following year.",
    "Q: Who discovered penicillin? A: Alexander Fleming",
    "The tenant shall return the keys to the landlord within three days after the end of the lease.",
    '"If you ask me," she said, "the bridge will never hold."',
    "Kubernetes was released by Google in 2014, and the Cloud Native Computing Foundation maintains it.",
)


def shown(row: Segmentation) -> str:
    units = " | ".join(unit.strip() for unit in row.units)
    return units if row.fallback is None else f"{units}   [{row.fallback}: cut by {row.segmenter}]"


def drawn(row: Segmentation, settings: Segment) -> str:
    """Return the units of the first epoch, in their original order."""
    generator = generator_for(0, 0, row.id)
    ordering = arrange(row, "reversed", generator, Permute(), settings)
    starts = sorted(piece.source for piece in ordering.pieces if ordering.text[piece.start : piece.end].strip())
    ends = [*starts[1:], len(row.text)]
    return " | ".join(row.text[start:end].strip() for start, end in zip(starts, ends, strict=True))


def examples(model: str | None) -> list[str]:
    chosen = {name: Segment(segmenter=name) for name in ("spacy", "word", "entity", "ngram", "mentions", "sentence")}
    chosen["random"] = Segment(segmenter="random", max_words=4)
    if model is not None:
        for mode in ("generate", "constrained", "score"):
            asked = {"model": model, "mode": mode}
            chosen[f"assistant, {mode}"] = Segment(segmenter="assistant", assistant=asked)
        chosen["hybrid, constrained"] = Segment(segmenter="hybrid", assistant={"model": model, "mode": "constrained"})
    width = max(map(len, chosen))
    records = [Record(f"s{n}", text, "examples", n) for n, text in enumerate(SENTENCES, 1)]
    rows = {name: make_segmenter(settings).segment(records) for name, settings in chosen.items()}
    lines = ["```"]
    for number, text in enumerate(SENTENCES):
        lines.append(text)
        for name, settings in chosen.items():
            row = rows[name][number]
            lines.append(f"  {name:<{width}}  {drawn(row, settings) if name == 'random' else shown(row)}")
        lines.append("")
    return [*lines[:-1], "```"]


def main() -> None:
    """Put the examples between the two marks of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assistant", metavar="MODEL", help="a local model: show assistant and hybrid too")
    given = parser.parse_args()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + START, "", *examples(given.assistant), "", END]) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
