"""The training log, cut back to a checkpoint."""

import json
from pathlib import Path

from spt.artifact import write_atomically


def truncate_log(path: Path, step: int) -> None:
    """Drop log lines of steps after `step`, and a last line that was cut off: the resumed run writes them again."""
    if not path.exists():
        return
    kept = []
    for line in path.read_bytes().splitlines():
        try:
            last = json.loads(line)["step"]
        except (ValueError, TypeError, KeyError):
            break
        if last <= step:
            kept.append(line + b"\n")
    write_atomically(path, b"".join(kept))
