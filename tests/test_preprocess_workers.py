"""Several processes cut what one would have cut: nothing lost, nothing reordered, whatever happens to them."""

import json
import multiprocessing
import threading
import time

import pytest
from test_preprocess import facts, files, make_config

from spt.config import Segment
from spt.errors import InputError, WorkError
from spt.preprocess import preprocess, read_segmented
from spt.preprocess.workers import CHUNK, cutter
from spt.records import Record
from spt.segment.word import WordSegmenter

POISON = "Over spaCy's limit of a million characters. " * 23_000


def with_processes(config, processes, **segment):
    return config.model_copy(update={"segment": Segment(processes=processes, **segment)})


def test_the_number_of_processes_changes_no_byte_and_no_text_empties_its_batch(tmp_path):
    rows = facts(2 * CHUNK + 20)
    rows[CHUNK + 3]["text"] = POISON
    config = make_config(tmp_path, rows, shard_size=CHUNK + 100)
    one = preprocess(with_processes(config, 1, segmenter="word"), output=tmp_path / "one")
    two = preprocess(with_processes(config, 2, segmenter="word"), output=tmp_path / "two")
    assert files(one) == files(two)
    assert [row.text for row in read_segmented(two)] == [row["text"] for row in rows]


def test_parsed_units_are_the_same_in_two_processes(tmp_path):
    rows = [
        {"text": f"Ada Brown, who wrote book {i}, was born in Lyon. Ben met her in {1900 + i}."}
        for i in range(CHUNK + 9)
    ]
    config = make_config(tmp_path, rows)
    one = preprocess(with_processes(config, 1), output=tmp_path / "one")
    assert files(one) == files(preprocess(with_processes(config, 2), output=tmp_path / "two"))


def test_a_killed_worker_is_an_error_that_says_so_and_the_next_run_continues(tmp_path):
    config = with_processes(make_config(tmp_path, facts(24 * CHUNK), shard_size=CHUNK), 2, segmenter="word")
    folder = tmp_path / "run/segmented"
    killed = []

    def kill_one():
        while not killed:
            if list(folder.glob(".drafts/*.json")):
                worker = multiprocessing.active_children()[0]
                worker.kill()
                killed.append(worker.pid)
            time.sleep(0.001)

    thread = threading.Thread(target=kill_one, daemon=True)
    thread.start()
    with pytest.raises(WorkError, match=r"one of 2 processes .* was killed .*run again"):
        preprocess(config)
    thread.join()
    drafted = len(list(folder.glob(".drafts/*.json")))
    assert 0 < drafted < 24
    preprocess(config)
    assert json.loads((folder / "timings.json").read_text())["records_resumed"] == drafted * CHUNK
    assert files(folder) == files(preprocess(with_processes(config, 1, segmenter="word"), output=tmp_path / "one"))


def test_a_record_that_cannot_be_cut_is_named(monkeypatch):
    def fail(self, records):
        assert not any("poison" in record.text for record in records)
        return [None] * len(records)

    monkeypatch.setattr(WordSegmenter, "segment", fail)
    records = [Record(f"f{i}", "poison" if i == CHUNK + 7 else "fine", "facts.csv", i + 2) for i in range(2 * CHUNK)]
    with cutter(Segment(segmenter="word"), WordSegmenter()) as cut:
        chunks = cut(records)
        assert len(next(chunks)) == CHUNK
        with pytest.raises(WorkError, match=rf"facts\.csv:{CHUNK + 9}: record 'f{CHUNK + 7}' cannot be cut by .* word"):
            next(chunks)


def test_an_error_in_a_worker_comes_back_as_it_is(tmp_path):
    rows = [*({"text": "Ada sang.", "who": "Ada"} for _ in range(CHUNK)), {"text": "Ben sang.", "who": 3}]
    config = make_config(tmp_path, rows)
    with pytest.raises(InputError, match=rf"facts\.jsonl:{CHUNK + 1}: segment\.names_column 'who' holds 3"):
        preprocess(with_processes(config, 2, segmenter="mentions", labels=(), names_column="who"))


def test_a_column_that_no_record_has_is_refused_at_once(tmp_path):
    config = make_config(tmp_path, facts(3))
    with pytest.raises(InputError, match=r"none of the first 3 records has a column 'who'; they have year"):
        preprocess(with_processes(config, 1, segmenter="mentions", labels=(), names_column="who"))


def test_names_and_lengths_are_counted_and_told(tmp_path, capsys):
    rows = [{"text": "Critics adored Ada Brown. Ben Cole's song is “The Blue Hour”."}, {"text": "They left."}]
    folder = preprocess(with_processes(make_config(tmp_path, rows), 1))
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    assert counts["entities"] == {"seen": 3, "whole": 3, "alone": 3}
    assert sum(counts["words_per_unit"].values()) == counts["units"]
    told = capsys.readouterr().err
    assert "names: 3 seen, 100.0% whole, 100.0% alone" in told
    assert "sentences/s" in told
    assert "words a unit: 1: " in told
