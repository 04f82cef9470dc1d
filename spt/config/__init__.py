"""The experiment file: YAML in, frozen and typed values out; nothing unknown passes."""

from spt.config.assistant import Assistant
from spt.config.augment import Augment
from spt.config.evaluate import Evaluate, Headline, Metric
from spt.config.permute import Permute
from spt.config.questions import Questions
from spt.config.read import read_config, read_yaml, write_config
from spt.config.schema import (
    Config,
    Data,
    Fields,
    FromScratch,
    Model,
    Source,
)
from spt.config.segment import Segment
from spt.config.server import Server
from spt.config.train import Train

__all__ = [
    "Assistant",
    "Augment",
    "Config",
    "Data",
    "Evaluate",
    "Fields",
    "FromScratch",
    "Headline",
    "Metric",
    "Model",
    "Permute",
    "Questions",
    "Segment",
    "Server",
    "Source",
    "Train",
    "read_config",
    "read_yaml",
    "write_config",
]
