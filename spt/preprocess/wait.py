"""Waiting for another rank's preprocessing: by looking at the disk, since no process group exists yet.

A collective would be cut off by its watchdog after minutes; this wait has a bound of its own and says what it waits
for.
"""

import time
from pathlib import Path

from spt.errors import MissingError

HOURS = 24
"""How long one rank waits for another to segment the corpus."""


def wait_for_segmented(folder: Path, *, seconds: float = HOURS * 3600, interval: float = 0.5) -> None:
    """Return once `folder` holds a finished stage.

    Raises MissingError after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (folder / "manifest.json").exists():
        if time.monotonic() > deadline:
            raise MissingError(
                f"waited {seconds:.0f} s for rank 0 to finish {folder}; run `spt preprocess CONFIG` before torchrun"
            )
        time.sleep(interval)
