"""Several ranks make what one process makes, whichever of them dies; what goes wrong on one is said once."""

import inspect
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from test_preprocess import facts, files, make_config

from spt.errors import InputError
from spt.preprocess import preprocess, ranks, signs
from spt.preprocess.ranks import Ranks
from spt.preprocess.signs import Signs
from spt.records import Segmentation
from spt.segment.word import WordSegmenter

RANK = """
import os, sys, time
from spt.config import Config
from spt.errors import SptError
from spt.preprocess import preprocess, ranks, signs
from spt.progress import configure, is_main_process
from spt.records import Segmentation
from spt.segment.word import WordSegmenter
config, force, silence, cut, code = sys.argv[1:]
signs.BEAT, signs.SILENCE, ranks.GRACE = 0.1, float(silence), 0.3
exec(cut)
WordSegmenter.segment = plain
exec(code)
configure(enabled=is_main_process())
try:
    preprocess(Config.model_validate_json(config), force=bool(force))
except SptError as error:
    print("error:", error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
SLOW = "WordSegmenter.segment = lambda self, records: (time.sleep(0.05), plain(self, records))[1]"

FAILING = """
def segment(self, records):
    if os.environ["RANK"] != "2":
        time.sleep(600)
    raise MemoryError("no room")
WordSegmenter.segment = segment
"""


def plain(self, records):
    """Cut words as well as these texts need it, without the seconds that spaCy takes to import."""
    cuts = [tuple(at for at, sign in enumerate(record.text) if sign == " ") for record in records]
    return [Segmentation(row.id, row.text, at, (0,), "word") for row, at in zip(records, cuts, strict=True)]


@pytest.fixture(autouse=True)
def _plain_words(monkeypatch):
    monkeypatch.setattr(WordSegmenter, "segment", plain)


def launch(config, world, *, force="", silence=100, code=""):
    """Start the data stage on `world` ranks, as a launcher would, each after `code`."""
    settings = (config.model_dump_json(), force, str(silence), inspect.getsource(plain), code)
    command = [sys.executable, "-c", RANK, *settings]
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)} for rank in range(world)]
    return [subprocess.Popen(command, env=os.environ | place, stderr=subprocess.PIPE, text=True) for place in places]


def end(processes):
    """Return the exit codes, and what each rank printed on standard error."""
    try:
        said = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], said


def drafted(folder):
    return {int(path.stem) for path in folder.glob(".drafts/*.json")}


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(("world", "segmenter"), [(3, "word"), (2, "spacy")])
def test_the_number_of_ranks_changes_no_byte_and_only_rank_0_speaks(world, segmenter, tmp_path):
    rows = [*facts(20), '{"text": \n', {"text": "The last one.", "year": "late"}]
    config = make_config(tmp_path, rows, segmenter=segmenter, shard_size=3, on_error="reject")
    whole = preprocess(config, output=tmp_path / "whole")
    codes, said = end(launch(config, world))
    assert codes == [0] * world
    assert "21 records" in said[0]
    assert "1 rejected (invalid_json 1)" in said[0]
    assert not any(said[1:])
    folder = tmp_path / "run/segmented"
    assert files(folder) == files(whole)
    timings = json.loads((folder / "timings.json").read_text())
    assert (timings["records_segmented"], timings["records_resumed"]) == (21, 0)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["segmented"]


def test_a_rank_that_is_killed_loses_nothing(tmp_path):
    config = make_config(tmp_path, facts(60), shard_size=2)
    processes = launch(config, 2, silence=3, code=SLOW)
    until(lambda: {1, 3} <= drafted(tmp_path / "run/segmented"))
    processes[1].kill()
    codes, said = end(processes)
    assert codes == [0, -9]
    assert "rank 1 gives no sign of life; rank 0 cuts the shards it has not cut" in said[0]
    assert files(tmp_path / "run/segmented") == files(preprocess(config, output=tmp_path / "whole"))


def test_a_launch_that_is_killed_is_continued_by_another_number_of_ranks(tmp_path):
    config = make_config(tmp_path, facts(60), shard_size=2)
    folder = tmp_path / "run/segmented"
    processes = launch(config, 3, code=SLOW)
    until(lambda: len(drafted(folder)) > 3)
    for process in processes:
        process.kill()
    end(processes)
    kept = len(drafted(folder))
    assert end(launch(config, 2))[0] == [0, 0]
    timings = json.loads((folder / "timings.json").read_text())
    assert (timings["records_resumed"], timings["records_segmented"]) == (2 * kept, 60 - 2 * kept)
    assert files(folder) == files(preprocess(config, output=tmp_path / "whole"))


def test_a_bad_row_ends_every_rank_and_is_said_once(tmp_path):
    config = make_config(tmp_path, [*facts(9), "not json\n"], shard_size=1)
    codes, said = end(launch(config, 3))
    assert codes == [2, 2, 2]
    assert "".join(said).count("facts.jsonl:10: invalid_json") == 1
    assert "facts.jsonl:10: invalid_json" in said[0]
    mended = make_config(tmp_path, facts(10), shard_size=1)
    assert end(launch(mended, 3))[0] == [0, 0, 0]
    assert files(tmp_path / "run/segmented") == files(preprocess(mended, output=tmp_path / "whole"))


def test_a_failure_on_one_rank_interrupts_the_others_at_once(tmp_path):
    config = make_config(tmp_path, facts(9), shard_size=1)
    started = time.monotonic()
    processes = launch(config, 3, code=FAILING)
    codes, said = end(processes)
    assert time.monotonic() - started < 100
    assert codes == [1, 1, 1]
    assert "rank 2 of 3:" in said[0]
    assert "record 'f2' cannot be cut by the segmenter word (MemoryError('no room'))" in said[0]
    assert not any(said[1:])


def test_force_replaces_what_another_configuration_made(tmp_path):
    preprocess(make_config(tmp_path, facts(3)))
    changed = make_config(tmp_path, facts(8), shard_size=2)
    codes, said = end(launch(changed, 2))
    assert codes == [2, 2]
    assert "data.shard_size: 10000 -> 2" in said[0]
    assert not said[1]
    assert end(launch(changed, 2, force="yes"))[0] == [0, 0]
    assert files(tmp_path / "run/segmented") == files(preprocess(changed, output=tmp_path / "whole"))


def test_the_others_end_when_rank_0_is_gone_and_one_of_them_says_so(tmp_path):
    processes = launch(make_config(tmp_path, facts(400), shard_size=1), 3, silence=2, code=SLOW)
    until(lambda: {1, 2} <= drafted(tmp_path / "run/segmented"))
    processes[0].kill()
    codes, said = end(processes)
    assert codes == [-9, 1, 1]
    assert "rank 0 gave no sign of life for 2 s; run again to go on" in said[1]
    assert not said[2]


def test_what_a_killed_launch_left_behind_is_not_taken_for_a_sign_of_life(tmp_path):
    old, new = Signs(tmp_path, 1, (0,)), Signs(tmp_path, 0, (1,))
    old.tell("failed", message="long ago", exit_code=1)
    late = Signs(tmp_path, 0, (1,))
    assert new.settled(1, "failed")
    assert not late.settled(1, "starting")
    old.tell("drafted", cut=3)
    assert late.settled(1, "open")
    assert (late.peers[1].said["cut"], late.peers[1].has_reached("finished")) == (3, False)


def test_a_rank_that_does_not_exist_and_an_input_for_one_process_are_refused(tmp_path, monkeypatch):
    config = make_config(tmp_path, facts(2))
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="RANK=2, WORLD_SIZE=2: RANK must be below WORLD_SIZE"):
        preprocess(config)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(ranks, "FAREWELL", 0)
    monkeypatch.setattr(signs, "BEAT", 0.01)
    source = config.data.train.model_copy(update={"path": "-"})
    shared = config.model_copy(update={"data": config.data.model_copy(update={"train": source})})
    with pytest.raises(InputError, match="reaches one process only; save it to a file"):
        preprocess(shared)


def test_rank_0_stays_until_a_rank_that_failed_as_well_has_heard_of_it(tmp_path):
    first, second = Ranks(tmp_path, 0, 2), Ranks(tmp_path, 1, 2)
    first.start()
    second.start()
    second.tell("failed", message="bad row", exit_code=2)
    leaving = threading.Thread(target=first.fail, args=(InputError("bad row"),))
    leaving.start()
    leaving.join(0.5)
    assert leaving.is_alive()
    second.tell("failed", heard=True)
    leaving.join(20)
    assert not leaving.is_alive()
    first.stop()
    second.stop()
