"""The experiment file: YAML in, frozen and typed values out; nothing unknown passes."""

from spt.config.read import read_config, read_yaml, write_config
from spt.config.schema import (
    Config,
    Data,
    Evaluate,
    Fields,
    FromScratch,
    Model,
    Permute,
    Questions,
    Segment,
    Source,
    Train,
)

__all__ = [
    "Config",
    "Data",
    "Evaluate",
    "Fields",
    "FromScratch",
    "Model",
    "Permute",
    "Questions",
    "Segment",
    "Source",
    "Train",
    "read_config",
    "read_yaml",
    "write_config",
]
