"""How far a cell has come, by the keys and manifests of its own stages.

In: a cell's experiment. Out: whether it is finished, open, or the work of another configuration. Trade-off: a finished
cell costs its key, which reads its model's bytes, instead of a process that would find out the same.
"""

from pathlib import Path
from typing import Any, NamedTuple

from spt.artifact import changed_keys, open_stage, read_json
from spt.config import Config
from spt.errors import DamagedError, SptError

_WRITTEN = ("summary.json", "scores.jsonl")
"""What a finished evaluation has, and a report is made of."""


class Standing(NamedTuple):
    """`finished`, or not; by stage, what another configuration had that made its folder, or what is damaged there."""

    finished: bool = False
    train: tuple[str, ...] = ()
    evaluate: tuple[str, ...] = ()

    @property
    def stale(self) -> str | None:
        """Return why the cell cannot go on, with the remedy, or None."""
        changes = self.train or self.evaluate
        if not changes:
            return None
        listed = "\n  ".join(changes)
        return (
            f"made with another configuration, or damaged:\n  {listed}\n"
            "Give --force to make it anew, choose another --output, or set the values back."
        )


def stand(config: Config) -> Standing:
    """Return how far a cell has come; one whose key cannot be told is open, and its own run says what is wrong."""
    from spt.score.evaluate import evaluate_folder, evaluate_key
    from spt.train.setup import train_folder, train_key

    train, evaluate = train_folder(config), evaluate_folder(config)
    if not (train / "key.json").exists():
        return Standing()
    try:
        changes = _changes(train, train_key(config))
        if changes or not (train / "manifest.json").exists() or not (evaluate / "key.json").exists():
            return Standing(train=changes)
        changes = _changes(evaluate, evaluate_key(config))
    except SptError:
        return Standing()
    finished = (evaluate / "manifest.json").exists()
    if finished and not changes:
        changes = tuple(f"{evaluate / name}: missing" for name in _WRITTEN if not (evaluate / name).exists())
    return Standing(finished and not changes, evaluate=changes)


def _changes(folder: Path, key: dict[str, Any]) -> tuple[str, ...]:
    path = folder / "key.json"
    try:
        return tuple(changed_keys(read_json(path), key))
    except DamagedError:
        return (f"{path}: cannot be read",)


def empty_scores(config: Config) -> None:
    """Delete the scores that another configuration made, so that the trained model is asked anew."""
    from spt.score.evaluate import evaluate_folder, evaluate_key

    with open_stage(evaluate_folder(config), evaluate_key(config), force=True):
        pass
