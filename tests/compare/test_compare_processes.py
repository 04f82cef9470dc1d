"""Commands that run side by side: how many, what came of each, and what a signal does to them."""

import os
import signal
import sys
import threading

import pytest

from spt.compare.processes import Job, Processes, find_gpus

PATIENT = """
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""


def job(tmp_path, name, program):
    return Job(name, (sys.executable, "-c", program), tmp_path / name / "log.txt")


def nobody(labels):
    """Hear which jobs run, and do nothing."""


def when_ready(jobs, do):
    """Call `do` on another thread once every job has said that it is ready."""

    def watch():
        while not all(one.log.exists() and "ready" in one.log.read_text() for one in jobs):
            if waited.wait(0.02):
                return
        do()

    waited = threading.Event()
    threading.Thread(target=watch, daemon=True).start()
    return waited


def test_at_most_so_many_run_at_a_time_and_all_are_run(tmp_path):
    jobs, most = [job(tmp_path, f"job-{i}", "import time; time.sleep(0.2)") for i in range(5)], []
    ended = list(Processes(2).run(jobs, most.append))
    assert {one.job.label for one in ended} == {one.label for one in jobs}
    assert all(one.code == 0 and one.seconds >= 0.2 for one in ended)
    assert max(map(len, most)) == 2
    assert len(most) == 5


def test_one_that_fails_says_why_and_stops_no_other(tmp_path):
    jobs = [
        job(tmp_path, "spt", "import sys; print('much\\nerror: a wrong value\\nGive another.'); sys.exit(2)"),
        job(tmp_path, "bug", "raise KeyError('lost')"),
        job(tmp_path, "killed", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
        job(tmp_path, "silent", "import sys; sys.exit(4)"),
        job(tmp_path, "good", "print('fine')"),
    ]
    ended = {one.job.label: one for one in Processes(1).run(jobs, nobody)}
    assert {name: one.code for name, one in ended.items()} == {"spt": 2, "bug": 1, "killed": -9, "silent": 4, "good": 0}
    assert ended["spt"].reason == "error: a wrong value\nGive another."
    assert ended["bug"].reason.endswith("KeyError: 'lost'")
    assert "SIGKILL" in ended["killed"].reason
    assert ended["silent"].reason == "exit code 4, without a word"


def test_a_log_is_added_to_and_only_what_was_said_this_time_is_the_reason(tmp_path):
    for word in ("first", "second"):
        (ended,) = Processes(1).run([job(tmp_path, "again", f"print('error: {word}'); raise SystemExit(1)")], nobody)
        assert ended.reason == f"error: {word}"
    assert ended.job.log.read_text() == "error: first\nerror: second\n"


def test_a_log_that_somebody_deletes_ends_nothing(tmp_path):
    first = job(tmp_path, "gone", f"import shutil; shutil.rmtree({str(tmp_path / 'gone')!r}); raise SystemExit(3)")
    ended = list(Processes(1).run([first, job(tmp_path, "good", "print('fine')")], nobody))
    assert [one.reason for one in ended] == ["exit code 3, without a word", "fine"]


@pytest.mark.parametrize(("given", "threads"), [(None, str(max(len(os.sched_getaffinity(0)) // 4, 1))), ("7", "7")])
def test_jobs_share_the_cores_unless_told_otherwise(tmp_path, monkeypatch, given, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    (ended,) = Processes(4).run([job(tmp_path, "threads", "import os; print(os.environ['OMP_NUM_THREADS'])")], nobody)
    assert ended.said.strip() == threads


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request):
    """A signal that this process does not ignore, as it would SIGINT where a shell started the tests behind it."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_lets_what_runs_save_and_starts_no_more(tmp_path, number):
    jobs = [job(tmp_path, f"job-{i}", PATIENT) for i in range(4)]
    processes, before = Processes(2), signal.getsignal(number)
    with processes.heeding_signals():
        waited = when_ready(jobs[:2], lambda: os.kill(os.getpid(), number))
        ended = list(processes.run(jobs, nobody))
    waited.set()
    assert processes.asked is number
    assert {one.job.label: (one.code, one.said) for one in ended} == {
        "job-0": (75, "ready\nsaved\n"),
        "job-1": (75, "ready\nsaved\n"),
    }
    assert not jobs[2].log.exists()
    assert signal.getsignal(number) == before


def test_what_runs_is_stopped_where_nobody_waits_for_it_any_more(tmp_path):
    patient, quick = job(tmp_path, "patient", PATIENT), job(tmp_path, "quick", "import time; time.sleep(1)")
    running = Processes(2).run([patient, quick], nobody)
    assert next(running).job is quick
    running.close()
    assert patient.log.read_text() == "ready\nsaved\n"


def test_jobs_are_spread_over_gpus_and_each_sees_one(tmp_path):
    say = "import os, time; time.sleep(0.3); print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
    ended = list(Processes(2, ("4", "6")).run([job(tmp_path, f"job-{i}", say) for i in range(4)], nobody))
    assert sorted(one.said.strip() for one in ended) == ["4", "4", "6", "6"]


@pytest.mark.parametrize(
    ("count", "named", "found"), [(0, None, ()), (1, "3", ()), (2, None, ("0", "1")), (2, "5,7", ("5", "7"))]
)
def test_gpus_are_those_that_this_process_may_see(monkeypatch, count, named, found):
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    assert find_gpus({} if named is None else {"CUDA_VISIBLE_DEVICES": named}) == found
