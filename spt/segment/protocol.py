"""What every segmenter is: a name, notes for the user, and records in, segmentations out."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from spt.records import Record, Segmentation


class Segmenter(Protocol):
    """Cuts texts into units.

    `notes` say what it had to do without (a pipeline without a parser, ...); they are for the user, once.
    """

    name: str

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was lost, one sentence each."""
        ...

    def key(self) -> dict[str, Any]:
        """Return what the output depends on besides the settings: versions."""
        ...

    def segment(self, records: Sequence[Record]) -> list[Segmentation]:
        """Return one segmentation a record, in the records' order."""
        ...


@runtime_checkable
class Asking(Protocol):
    """A segmenter that asks somebody else."""

    def counts(self) -> dict[str, Any]:
        """Return what asking took in this process, for `timings.json`: requests, cache hits."""
        ...
