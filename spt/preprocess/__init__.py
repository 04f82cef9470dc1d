"""The data stage: a corpus becomes `segmented/`, Parquet shards of units that every later stage reads."""

from spt.preprocess.compare import compare
from spt.preprocess.read import check_segmented, find_segmented, load_segmented, read_segmented
from spt.preprocess.stage import preprocess, preprocess_key

__all__ = [
    "check_segmented",
    "compare",
    "find_segmented",
    "load_segmented",
    "preprocess",
    "preprocess_key",
    "read_segmented",
]
