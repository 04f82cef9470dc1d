"""Records → segmentations, in this process or in several.

In: records in the corpus's order. Out: their segmentations in the same order, and the same for any number of processes:
records are cut in chunks of a fixed size, wherever a chunk is cut. Workers make their own segmenter and send back cuts,
never a Doc. Trade-off: a worker starts with a fresh interpreter (two seconds), since forking beside running threads is
not safe; a script of one's own that asks for workers must be guarded by `if __name__ == "__main__"`.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context

from spt.config import Segment
from spt.errors import SptError, WorkError
from spt.progress import configure
from spt.records import Record, Segmentation
from spt.segment import Segmenter, make_segmenter

CHUNK = 256
"""Records cut at once; part of the result, since a parser's last digits may depend on its batch."""

Cut = Callable[[Sequence[Record]], Iterator[list[Segmentation]]]


@contextmanager
def cutter(settings: Segment, segmenter: Segmenter) -> Iterator[Cut]:
    """Yield a function that yields the segmentations of records, chunk by chunk.

    It raises WorkError where a worker was killed, or a record that makes the segmenter fail, named.
    """
    if settings.processes == 1:
        yield lambda records: (_cut(segmenter, chunk) for chunk in _chunks(records))
        return
    pool = ProcessPoolExecutor(settings.processes, get_context("spawn"), _start, (settings,))
    try:
        yield lambda records: pool.map(_cut_in_worker, _chunks(records))
    except BrokenProcessPool:
        raise WorkError(
            f"one of {settings.processes} processes that cut the corpus was killed (out of memory?); finished shards "
            "are kept, so run again, or with a smaller segment.processes or data.shard_size"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _chunks(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    for start in range(0, len(records), CHUNK):
        yield records[start : start + CHUNK]


_own: list[Segmenter] = []
"""The segmenter of this worker."""


def _start(settings: Segment) -> None:
    configure(enabled=False)
    _own.append(make_segmenter(settings))


def _cut_in_worker(records: Sequence[Record]) -> list[Segmentation]:
    return _cut(_own[0], records)


def _cut(segmenter: Segmenter, records: Sequence[Record]) -> list[Segmentation]:
    try:
        return segmenter.segment(records)
    except SptError:
        raise
    except Exception as error:
        for record in records:
            _try_alone(segmenter, record)
        where = f"{_place(records[0])} and those after it"
        raise WorkError(f"the segmenter {segmenter.name} failed on {where} ({error!r})") from error


def _try_alone(segmenter: Segmenter, record: Record) -> None:
    try:
        segmenter.segment([record])
    except Exception as error:
        raise WorkError(
            f"{_place(record)} cannot be cut by the segmenter {segmenter.name} ({error!r}); take the record out of the "
            "corpus, or choose another segment.segmenter"
        ) from error


def _place(record: Record) -> str:
    return f"{record.source}:{record.line}: record {record.id!r}"
