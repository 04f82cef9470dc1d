"""Steps prepared ahead of the loop, by other processes or some at a time, and handed over in order.

In: a function from a step's number to what the step needs, and the numbers. Out: the same objects as calling it here,
since it depends on the number alone. Trade-off: workers are forked by a fork server that has imported this package
once, never from the training process, whose threads and CUDA context do not survive a fork; so the first start costs
some seconds. A script of one's own that trains must be guarded by `if __name__ == "__main__"`.
"""

import io
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

from spt.errors import SptError, WorkError
from spt.progress import configure

T = TypeVar("T")


def prepared_ahead(prepare: Callable[[int], T], numbers: range, workers: int) -> Iterator[T]:
    """Yield `prepare(number)` for each number, made by worker processes; close the iterator to end them.

    Raises what `prepare` raises, at its number, and WorkError where a worker was killed.
    """
    loader = DataLoader(
        _Prepared(prepare),
        batch_size=None,
        sampler=numbers,
        num_workers=min(workers, len(numbers)),
        worker_init_fn=_start,
        multiprocessing_context=_context(),
        generator=torch.Generator(),  # the process's own would move on, and dropout draws from it
    )
    rows = iter(loader)
    try:
        for number in numbers:
            yield _unpack(_next(rows, number))
    finally:
        del rows  # its last reference: the workers are told to end, and waited for


def prepared_together(prepare: Callable[[int], T], numbers: range, size: int) -> Iterator[T]:
    """Yield `prepare(number)` for each number, made `size` at a time; raises what it raises, at its number.

    After a training step this code and its data have left the CPU's caches; several steps in a row share the way back.
    """
    for start in range(0, len(numbers), size):
        made: list[T] = []
        failed: SptError | None = None
        for number in numbers[start : start + size]:
            try:
                made.append(prepare(number))
            except SptError as error:
                failed = error
                break
        yield from made
        if failed is not None:
            raise failed


def _next(rows: Iterator[bytes], number: int) -> bytes:
    try:
        return next(rows)
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker (pid"):
            raise
        raise WorkError(
            f"step {number + 1}: a process that prepares the data ended ({error}): out of memory, killed, or started "
            'from a script without `if __name__ == "__main__":`. Run again to go on from the last checkpoint; '
            "train.dataloader_num_workers: 0 prepares the data in the training process."
        ) from None


class _Prepared(Dataset[bytes], Generic[T]):
    """The steps by number, as bytes; an error of the user's travels as itself, not as torch's report of it."""

    def __init__(self, prepare: Callable[[int], T]) -> None:
        self.prepare = prepare

    def __getitem__(self, number: int) -> bytes:
        try:
            return _pack(self.prepare(number))
        except SptError as error:
            return _pack(error)


class _Pickler(pickle.Pickler):
    """Sends tensors as arrays: torch would open a connection back to the worker for each of them."""

    def reducer_override(self, value: Any) -> Any:
        return (_tensor, (value.numpy(),)) if isinstance(value, torch.Tensor) else NotImplemented


def _tensor(array: Any) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    return tensor.pin_memory() if torch.cuda.is_available() else tensor  # so that copying it need not be waited for


def _pack(value: Any) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


def _unpack(data: bytes) -> Any:
    value = pickle.loads(data)  # noqa: S301  # what our own worker packed
    if isinstance(value, SptError):
        raise value
    return value


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["spt.train.stream", "datasets", "transformers"])
    return context


def _start(worker: int) -> None:
    """Leave signals to the training process, which saves first: a terminal sends Ctrl-C to every process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # torch's worker looks whether its parent lives, but that is the fork server, which lives as long as its workers.
    threading.Thread(target=_end_with_training, daemon=True).start()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # a worker is one core's share
    configure(enabled=False)


def _end_with_training() -> None:
    training = multiprocessing.parent_process()
    assert training is not None
    training.join()
    os._exit(1)
