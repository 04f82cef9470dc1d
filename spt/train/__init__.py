"""The training stage: segmented data and a model in, a folder that `from_pretrained` reads out."""

from spt.train.loop import train
from spt.train.ranks import leave
from spt.train.setup import segmented_folder, train_folder

__all__ = ["leave", "segmented_folder", "train", "train_folder"]
