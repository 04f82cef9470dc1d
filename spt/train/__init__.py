"""The training stage: segmented data and a model in, a folder that `from_pretrained` reads out."""

from spt.train.card import refresh_card
from spt.train.hub import check_push, push_to_hub
from spt.train.launch import launch, must_launch
from spt.train.loop import train
from spt.train.merge import merge
from spt.train.ranks import leave, make_accelerator
from spt.train.setup import train_folder

__all__ = [
    "check_push",
    "launch",
    "leave",
    "make_accelerator",
    "merge",
    "must_launch",
    "push_to_hub",
    "refresh_card",
    "train",
    "train_folder",
]
