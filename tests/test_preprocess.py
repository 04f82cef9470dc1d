"""The data stage: the same bytes whatever happened on the way, nothing lost, nothing unfinished read."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spt.config import Config
from spt.errors import CorpusError, DamagedError, InputError, MissingError, StaleError
from spt.preprocess import load_segmented, preprocess, read_segmented
from spt.preprocess.summary import details

KILLED_RUN = """
import sys, time
from pathlib import Path
from spt.config import Config
from spt.preprocess import preprocess
from spt.preprocess.summary import details
from spt.segment.word import WordSegmenter
slow = WordSegmenter.segment
WordSegmenter.segment = lambda self, records: (time.sleep(0.01), slow(self, records))[1]
preprocess(Config.model_validate_json(sys.argv[1]))
"""


def make_config(folder, rows, *, segmenter="word", pipeline="en_core_web_sm", **data):
    path = folder / "facts.jsonl"
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    values = {
        "name": "test",
        "output": str(folder / "run"),
        "data": {"train": {"path": str(path)}, **data},
        "segment": {"segmenter": segmenter, "pipeline": pipeline},
        "model": {"base": "none"},
    }
    return Config.model_validate(values)


def facts(count):
    return [
        {"id": f"f{i}", "text": f"Person {i} wrote book {i}. It sold well.", "year": 1900 + i} for i in range(count)
    ]


def files(folder):
    """Return the bytes of every file that must not differ between runs."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in (".lock", "timings.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_rows_hold_the_segmentation_and_the_other_columns_untouched(tmp_path):
    row = {"prompt": "Ada Brown wrote", "completion": " a song.", "year": 1950, "tags": ["x"], "note": None}
    folder = preprocess(make_config(tmp_path, [row], segmenter="spacy"))
    (part,) = folder.glob("part-*.parquet")
    assert pq.read_table(part).to_pylist() == [
        {
            "id": "facts:1", "text": "Ada Brown wrote a song.", "cuts": [9, 15], "sentences": [0], "segmenter": "spacy",
            "completion_start": 15, "year": 1950, "tags": '["x"]', "note": None,
        }
    ]  # fmt: skip
    (segmentation,) = read_segmented(folder)
    assert segmentation.units == ("Ada Brown", " wrote", " a song.")


def test_parts_are_shards_in_the_order_of_the_corpus(tmp_path):
    folder = preprocess(make_config(tmp_path, facts(25), shard_size=10))
    assert [pq.read_table(folder / f"part-0000{n}.parquet").num_rows for n in range(3)] == [10, 10, 5]
    assert [row.id for row in read_segmented(folder)] == [f"f{i}" for i in range(25)]
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    assert counts == {
        "records": 25, "sentences": 50, "units": 200, "single": 0, "words_per_unit": {"1": 200},
        "segmenters": {"word": 25}, "entities": {}, "fallbacks": {}, "rejects": {},
    }  # fmt: skip


def test_records_that_no_order_changes_are_counted_and_shown(tmp_path):
    rows = [{"text": "Alone."}, *facts(3), {"text": "Single"}]
    manifest = json.loads((preprocess(make_config(tmp_path, rows)) / "manifest.json").read_text())
    assert manifest["counts"]["single"] == 2
    assert "  one unit: 2 of 5 records, which no order changes" in details(manifest)


def test_the_same_input_gives_the_same_bytes_wherever_it_lies(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    one = preprocess(make_config(tmp_path / "a", facts(12), shard_size=5))
    two = preprocess(make_config(tmp_path / "b", facts(12), shard_size=5))
    assert files(one) == files(two)


def test_killed_run_continues_and_ends_with_the_same_bytes(tmp_path):
    rows = [*facts(90), '{"text": \n', {"text": "The last one.", "year": "late"}]
    config = make_config(tmp_path, rows, shard_size=2, on_error="reject")
    whole = preprocess(config, output=tmp_path / "whole")
    command = [sys.executable, "-c", KILLED_RUN, config.model_dump_json()]
    folder = tmp_path / "run/segmented"
    wait = random.Random(0)
    drafted = [0]
    for _ in range(2):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
            while run.poll() is None and len(list(folder.glob(".drafts/*.json"))) <= drafted[-1]:
                time.sleep(0.002)
            time.sleep(wait.uniform(0, 0.1))
            run.send_signal(signal.SIGKILL)
        drafted.append(len(list(folder.glob(".drafts/*.json"))))
    assert 0 < drafted[1] < 46  # the first was killed in the middle
    preprocess(config)
    assert files(folder) == files(whole)


def test_a_run_killed_before_its_parts_were_named_leaves_no_trace(tmp_path):
    config = make_config(tmp_path, facts(3))
    folder = tmp_path / "run/segmented"
    folder.mkdir(parents=True)
    (folder / ".key.json.123.tmp").write_text("{")
    preprocess(config)
    assert sorted(path.name for path in folder.iterdir() if path.name != ".lock") == [
        "key.json", "manifest.json", "part-00000.parquet", "rejects.jsonl", "timings.json"
    ]  # fmt: skip


def test_finished_stage_is_reused_without_segmenting_and_says_so(tmp_path, monkeypatch, capsys):
    config = make_config(tmp_path, facts(3))
    folder = preprocess(config)
    before = files(folder)
    monkeypatch.setattr("spt.segment.word.WordSegmenter.segment", None)
    assert preprocess(config) == folder
    assert "reused, 3 records" in capsys.readouterr().err
    assert files(folder) == before


def test_another_input_is_refused_unless_forced(tmp_path):
    preprocess(make_config(tmp_path, facts(3)))
    changed = make_config(tmp_path, facts(4))
    with pytest.raises(StaleError, match=r"data\.train\.files"):
        preprocess(changed)
    assert len(list(read_segmented(preprocess(changed, force=True)))) == 4


def test_rejects_are_listed_counted_and_shown(tmp_path, capsys):
    rows = [*facts(2), "not json\n", {"text": " "}, {"id": "f0", "text": "Twice."}]
    folder = preprocess(make_config(tmp_path, rows, on_error="reject", shard_size=1))
    lines = [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]
    assert [(line["line"], line["reason"]) for line in lines] == [
        (3, "invalid_json"), (4, "empty_text"), (5, "duplicate_id")
    ]  # fmt: skip
    assert set(lines[0]) == {"source", "line", "reason", "raw"}
    assert json.loads((folder / "manifest.json").read_text())["counts"]["rejects"]["empty_text"] == 1
    assert "3 rejected (duplicate_id 1, empty_text 1, invalid_json 1)" in capsys.readouterr().err


def test_a_stopped_run_can_be_run_again_once_its_input_is_mended(tmp_path):
    with pytest.raises(CorpusError, match=r"facts\.jsonl:2: invalid_json"):
        preprocess(make_config(tmp_path, [*facts(1), "not json\n"], shard_size=1))
    assert len(list(read_segmented(preprocess(make_config(tmp_path, facts(2)))))) == 2


def test_shards_that_a_mended_corpus_leaves_as_they_were_are_not_cut_again(tmp_path):
    with pytest.raises(CorpusError, match=r"facts\.jsonl:4: invalid_json"):
        preprocess(make_config(tmp_path, [*facts(3), "not json\n"], shard_size=1))
    mended = facts(4)
    mended[1] = {**mended[1], "text": "Another text altogether."}
    folder = preprocess(make_config(tmp_path, mended, shard_size=1))
    timings = json.loads((folder / "timings.json").read_text())
    assert (timings["records_resumed"], timings["records_segmented"]) == (2, 2)
    assert [row.text for row in read_segmented(folder)] == [row["text"] for row in mended]
    whole = preprocess(make_config(tmp_path, mended, shard_size=1), output=tmp_path / "whole")
    assert all(
        (whole / name).read_bytes() == (folder / name).read_bytes() for name in ("part-00001.parquet", "manifest.json")
    )


@pytest.mark.parametrize(("rows", "found"), [([], "empty"), ([{"text": ""}], "1 rejected \\(empty_text 1\\)")])
def test_a_corpus_without_records_is_an_error(tmp_path, rows, found):
    with pytest.raises(InputError, match=found):
        preprocess(make_config(tmp_path, rows, on_error="reject"))


def test_columns_of_changing_type_become_json_and_names_of_ours_are_kept_apart(tmp_path, capsys):
    odd = [1, "1", None, 2.5, True, [1, {"a": None}], 2**70]
    rows = [
        {"text": "A text.", "odd": value, "cuts": 3, "columns.cuts": "c", "half": i / 2} for i, value in enumerate(odd)
    ]
    folder = preprocess(make_config(tmp_path, rows, shard_size=2))
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("part-*"))])
    assert [None if text is None else json.loads(text) for text in table["odd"].to_pylist()] == odd
    assert table["half"].to_pylist() == [i / 2 for i in range(7)]
    assert set(table["columns.columns.cuts"].to_pylist()) == {3}
    assert set(table["columns.cuts"].to_pylist()) == {"c"}
    assert "'odd' holds values of several types" in capsys.readouterr().err


def test_unfinished_folder_is_not_read(tmp_path):
    folder = preprocess(make_config(tmp_path, facts(3)))
    (folder / "manifest.json").unlink()
    for read in (lambda: list(read_segmented(folder)), lambda: load_segmented(folder, tmp_path / "cache")):
        with pytest.raises(MissingError, match=r"unfinished.*\n  spt preprocess"):
            read()
    with pytest.raises(MissingError, match="holds no segmented data"):
        list(read_segmented(tmp_path))


@pytest.mark.parametrize("cuts", [[9, 3], [3, 3], [0], [999], [-1], None])
def test_a_row_whose_units_do_not_partition_its_text_is_refused(tmp_path, cuts):
    folder = preprocess(make_config(tmp_path, facts(2)))
    part = folder / "part-00000.parquet"
    table = pq.read_table(part)
    broken = pa.array([cuts, []], pa.list_(pa.int32()))
    pq.write_table(table.set_column(2, "cuts", broken), part)
    with pytest.raises(DamagedError, match=r"part-00000\.parquet"):
        load_segmented(folder, tmp_path / "cache")


def test_a_part_cut_short_or_missing_rows_is_refused(tmp_path):
    folder = preprocess(make_config(tmp_path, facts(4)))
    part = folder / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedError, match="--force"):
        list(read_segmented(folder))
    part.write_bytes(whole)
    pq.write_table(pq.read_table(part).slice(0, 3), part)
    with pytest.raises(DamagedError, match="changed since it was written"):
        list(read_segmented(folder))


def test_loaded_dataset_gives_any_row_and_keeps_dates_as_text(tmp_path):
    rows = [{"text": "Born then.", "born": "1867-11-07"}, {"text": "2001-01-01", "born": "1900-01-01"}]
    dataset = load_segmented(preprocess(make_config(tmp_path, rows)), tmp_path / "cache")
    assert dataset[1]["text"] == "2001-01-01"
    assert dataset[0]["born"] == "1867-11-07"
    assert all(Path(file["filename"]).is_relative_to(tmp_path / "cache") for file in dataset.cache_files)


def test_segmented_data_of_another_run_is_used_as_it_is(tmp_path):
    folder = preprocess(make_config(tmp_path, facts(2)))
    values = {"name": "o", "data": {"segmented": str(folder)}, "model": {"base": "none"}}
    assert preprocess(Config.model_validate({**values, "segment": {"segmenter": "word", "processes": 9}})) == folder
    with pytest.raises(StaleError, match=r'segment\.segmenter: "word" -> "spacy"'):
        preprocess(Config.model_validate(values))
    missing = Config.model_validate({"name": "o", "data": {"segmented": str(tmp_path)}, "model": {"base": "none"}})
    with pytest.raises(MissingError):
        preprocess(missing)


def test_a_finished_stage_is_reused_without_importing_torch_or_spacy(tmp_path):
    config = make_config(tmp_path, facts(2), segmenter="spacy")
    preprocess(config)
    code = (
        "import sys; from spt.config import Config; from spt.preprocess import preprocess\n"
        "preprocess(Config.model_validate_json(sys.argv[1]))\n"
        "sys.exit(','.join({'torch', 'spacy', 'datasets', 'transformers'} & set(sys.modules)) or 0)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, config.model_dump_json()], capture_output=True, text=True, env=os.environ
    )
    assert run.returncode == 0, run.stderr
    assert "reused" in run.stderr
