"""Rates are those of the steps since the last line; what happens between steps is not in them."""

import pytest

import spt.train.throughput
from spt.train.throughput import UNITS, Throughput


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(spt.train.throughput.time, "perf_counter", lambda: now[0])
    return now


def run(throughput, clock, steps, *, wait, work, between):
    def prepared():
        for step in range(steps):
            clock[0] += wait
            yield step

    for _ in throughput.timed(prepared()):
        clock[0] += work
        throughput.count(targets=80, tokens=90, size=120)
        clock[0] += between  # an evaluation, a checkpoint


def test_rates_are_since_the_last_line_and_leave_out_what_is_between_steps(clock):
    throughput = Throughput(flops_per_token=6e6, peak_flops=1e9)
    run(throughput, clock, 4, wait=1.0, work=2.0, between=7.0)
    assert throughput.rate == 30
    columns = throughput.take()
    assert columns == {
        "tokens_per_second": 30.0,
        "target_tokens_per_second": pytest.approx(26.7),
        "non_padding": 0.75,
        "data_wait": pytest.approx(1 / 3, abs=1e-4),
        "mfu": pytest.approx(30 * 6e6 / 1e9),
    }
    assert columns.keys() == UNITS.keys()
    run(throughput, clock, 1, wait=0.0, work=0.5, between=0.0)
    assert throughput.take()["tokens_per_second"] == 180.0


def test_what_a_device_can_do_is_left_open_where_it_is_unknown(clock):
    throughput = Throughput(flops_per_token=6e6, peak_flops=None)
    run(throughput, clock, 1, wait=0.0, work=1.0, between=0.0)
    assert throughput.take()["mfu"] is None
