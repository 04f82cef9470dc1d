"""Workers end with the loop, report what went wrong in the user's words, and leave signals to the training process."""

import os
import signal
import time
from contextlib import closing, nullcontext

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spt.errors import CorpusError, ModelError, WorkError
from spt.train.ahead import prepared_ahead, prepared_together


def tensors(number):
    return [torch.full((2, number), number), os.getpid()]


def fails_at_three(number):
    if number == 3:
        raise ModelError("record 'x' holds the order tag")
    return number


def fails_with_a_row(number):
    raise CorpusError("a.jsonl", 3, "wrong_type", "text is a number")


def is_killed_at_two(number):
    if number == 2:
        time.sleep(1)  # what was made before is on its way through a thread of this process
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def is_asked_to_stop(number):
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    return number


def gone(pids):
    for _ in range(100):
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_workers_end_when_the_steps_are_closed_early():
    with closing(prepared_ahead(tensors, range(50), 2)) as steps:
        found = [next(steps) for _ in range(4)]
    assert [tensor.tolist() for tensor, _ in found] == [torch.full((2, n), n).tolist() for n in range(4)]
    pids = {pid for _, pid in found}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert gone(pids)


def test_workers_end_when_the_loop_raises():
    pids = set()

    def learn():
        for tensor, pid in prepared_ahead(tensors, range(50), 1):
            pids.add(pid)
            if tensor.numel() == 6:
                raise ArithmeticError

    with pytest.raises(ArithmeticError):
        learn()
    assert pids
    assert gone(pids)


def test_an_error_of_a_worker_arrives_at_its_step_as_it_was_raised():
    steps = prepared_ahead(fails_at_three, range(1, 9), 2)
    assert [next(steps), next(steps)] == [1, 2]
    with pytest.raises(ModelError) as caught:
        next(steps)
    assert str(caught.value) == "record 'x' holds the order tag"
    with pytest.raises(CorpusError) as caught:
        next(prepared_ahead(fails_with_a_row, range(9), 1))
    assert str(caught.value) == "a.jsonl:3: wrong_type: text is a number"


@given(numbers=st.builds(range, st.integers(1, 5), st.integers(1, 9)), size=st.integers(1, 9))
def test_steps_prepared_together_come_in_order_and_an_error_at_its_step(numbers, size):
    steps, found = prepared_together(fails_at_three, numbers, size), []
    fails = 3 in numbers
    with pytest.raises(ModelError) if fails else nullcontext():
        found.extend(steps)
    assert found == [number for number in numbers if number < 3 or not fails]


def test_a_killed_worker_ends_the_run_and_names_the_step_and_the_remedy():
    steps = prepared_ahead(is_killed_at_two, range(9), 1)
    with pytest.raises(WorkError, match=r"step 3: a process that prepares the data ended.*dataloader_num_workers: 0"):
        list(steps)


def test_signals_to_workers_are_left_to_the_training_process():
    assert list(prepared_ahead(is_asked_to_stop, range(5), 1)) == list(range(5))
