"""The data stage: a corpus becomes `segmented/`, Parquet shards of units that every later stage reads."""

from spt.preprocess.read import load_segmented, read_segmented
from spt.preprocess.stage import preprocess

__all__ = ["load_segmented", "preprocess", "read_segmented"]
