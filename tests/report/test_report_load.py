from pathlib import Path

import pytest
from invented_runs import make_run, make_scores

from spt.artifact import dump_json
from spt.errors import DamagedError, MissingError
from spt.report import load_run


def test_unfinished_evaluation_names_the_command_that_finishes_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", make_scores(1.0, 0.0, facts=2))
    (folder / "evaluate/key.json").write_text("{}")
    with pytest.raises(MissingError, match=r"spt evaluate .*config\.yaml"):
        load_run(folder)
    (folder / "evaluate/manifest.json").write_text("{}")
    assert load_run(folder).name == "spt"
    (folder / "evaluate/scores.jsonl").unlink()
    with pytest.raises(MissingError, match="spt evaluate"):
        load_run(folder)
    with pytest.raises(MissingError, match="no such folder"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("evaluate/summary.json", '{"name": ', "summary.json"),
        ("evaluate/summary.json", '{"name": "x"}', "lacks forward, headline"),
        ("evaluate/scores.jsonl", '{"id": 1}\n{"id"', "scores.jsonl:2"),
        ("train/metrics.jsonl", "[1]", "metrics.jsonl:1"),
        ("train/metrics.jsonl", b"\xff\xfe", "metrics.jsonl:1"),
    ],
)
def test_damaged_file_is_named_with_its_line(tmp_path: Path, file: str, line: str | bytes, message: str) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2))
    (folder / file).write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(DamagedError, match=message):
        load_run(folder)


def test_unescaped_line_separators_do_not_split_a_row(tmp_path: Path) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2))
    (folder / "evaluate/scores.jsonl").write_text(dump_json({"id": "a", "prediction": "\u2028\x85"}, indent=None))
    assert load_run(folder).scores[0]["prediction"] == "\u2028\x85"
