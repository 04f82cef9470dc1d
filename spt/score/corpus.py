"""The training corpus, as evaluation reads it, and openings of its texts.

In: a run's segmented data. Out: where it lies, its key, openings. Trade-off: it is read anew for each use, so that it
is never in memory as a whole.
"""

from pathlib import Path

from spt.artifact import hash_file
from spt.config import Config
from spt.preprocess import find_segmented
from spt.preprocess.read import check_parts, read_segmented
from spt.records import Segmentation
from spt.score.fluency import Opening, open_sentence


def segmented_corpus(config: Config) -> Path | None:
    """Return the finished segmented data of a run, its own or that of `data.segmented`; None where there is none."""
    given = config.data.segmented
    folder = Path(config.output) / "segmented" if given is None else find_segmented(given)
    return folder if (folder / "manifest.json").exists() else None


def corpus_key(config: Config) -> str | None:
    """Return what stands for the corpus in a key: the hash of its manifest, which holds those of its parts."""
    folder = segmented_corpus(config)
    return None if folder is None else hash_file(folder / "manifest.json")


def read_openings(folder: Path, count: int) -> list[Opening]:
    """Return openings of up to `count` texts, taken at even distances through the corpus."""
    total = sum(check_parts(folder).values())
    wanted = {number * total // min(count, total) for number in range(min(count, total))}
    chosen = (text for number, text in enumerate(read_segmented(folder)) if number in wanted)
    opened = (open_sentence(_first_sentence(segmentation)) for segmentation in chosen)
    return [opening for opening in opened if opening is not None]


def _first_sentence(segmentation: Segmentation) -> str:
    end = segmentation.sentences[1] if len(segmentation.sentences) > 1 else len(segmentation.text)
    return segmentation.text[:end]
