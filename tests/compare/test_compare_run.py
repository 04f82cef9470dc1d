"""`spt compare` from its file to finished cells: what is run, what not again, and what is said of those that fail."""

import json
import os
import signal
import sys

import pytest
import yaml
from experiment import spt, write_experiment

from spt import cli
from spt.artifact import read_json, sole_writer
from spt.compare import run
from spt.compare.cell import read_cells
from spt.compare.config import read_comparison
from spt.compare.processes import Job
from spt.errors import DamagedError, MissingError, StaleError, StoppedError

METHODS = {
    "baseline": {"permute": {"orders": {"original": 1}, "order_tag": None}},
    "broken": {"train": {"learning_rate": 1e38, "warmup_ratio": 0}},
}


def write(folder, **values):
    write_experiment(folder, train={"epochs": 1, "eval_steps": None}, evaluate={"fluency_samples": 0})
    comparison = {
        "name": "small",
        "output": str(folder / "out"),
        "experiments": {"people": "experiment.yaml"},
        "methods": METHODS,
        "jobs": 2,
    }
    path = folder / "comparison.yaml"
    path.write_text(yaml.safe_dump(comparison | values, sort_keys=False))
    return path


def call(monkeypatch, capsys, *arguments):
    """Run `spt compare` in this process; return (exit code, standard output, standard error)."""
    monkeypatch.setattr(sys, "argv", ["spt", "compare", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "80")
    code = 0
    try:
        cli.main()
    except SystemExit as exit_:
        code = exit_.code or 0
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def jobs_of(monkeypatch, program):
    """Let cells run a program of the test's; return the labels of those that are run."""
    started = []

    def job(label, folder, config, command, *, force=False):
        started.append(label + (" --force" if force else ""))
        return Job(label, (sys.executable, "-c", program), folder / "log.txt")

    monkeypatch.setattr(run, "_job", job)
    return started


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("compare"))
    return path, spt("compare", path, check=False)


def test_a_cell_that_fails_is_told_of_and_stops_no_other(ran):
    path, done = ran
    output = path.parent / "out"
    cells = {cell.method: cell for cell in read_cells(output).cells}
    assert done.returncode == 1
    assert {name: cell.state for name, cell in cells.items()} == {"baseline": "finished", "broken": "failed"}
    assert "the loss is nan" in cells["broken"].reason
    assert "people/broken/seed-0" in done.stderr
    assert str(cells["broken"].folder / "log.txt") in done.stderr
    for name in ("config.yaml", "experiment.yaml", "log.txt", "train/manifest.json", "evaluate/summary.json"):
        assert (cells["baseline"].folder / name).exists()
    assert len(list((output / "segmented").iterdir())) == 1
    assert not (cells["baseline"].folder / "segmented").exists()
    assert read_json(output / "cells.json")["cells"][0]["folder"] == "cells/people/baseline/seed-0"


def test_the_report_is_made_of_what_is_finished_and_the_file_beside_it_is_the_comparison(ran, monkeypatch, capsys):
    output = ran[0].parent / "out"
    code, out, err = call(monkeypatch, capsys, ran[0], "--report", "--json")
    assert (code, json.loads(out)["name"]) == (0, "small")
    assert "report.html" in err
    assert "forward" in ran[1].stdout
    assert read_comparison(output / "comparison.yaml") == read_comparison(ran[0])


def test_a_training_counts_all_the_tokens_that_it_read(ran):
    folder = ran[0].parent / "out/cells/people/baseline/seed-0/train"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    tokens = [line["tokens"] for line in lines]
    assert tokens == sorted(tokens)
    assert read_json(folder / "manifest.json")["tokens"] == tokens[-1] > lines[-1]["target_tokens"]


def test_what_is_finished_is_not_run_again(ran, monkeypatch):
    started = jobs_of(monkeypatch, "raise SystemExit('error: again')")
    cells = run.run_comparison(*read_comparison(ran[0])).cells
    assert started == ["people/broken/seed-0"]
    assert [cell.state for cell in cells] == ["finished", "failed"]
    assert cells[1].reason == "error: again"


def test_what_other_settings_made_is_refused_by_key_and_replaced_by_force(ran, monkeypatch):
    started = jobs_of(monkeypatch, "")
    comparison, changed = read_comparison(ran[0], ["train.weight_decay=0.5"])
    refused = run.run_comparison(comparison, changed).cells
    assert started == []
    assert all("train.weight_decay: 0.0 -> 0.5" in cell.reason and "--force" in cell.reason for cell in refused)
    run.run_comparison(comparison, changed, force=True)
    assert started == ["people/baseline/seed-0 --force", "people/broken/seed-0 --force"]


def test_scores_alone_are_made_anew_where_only_the_questions_changed(ran, monkeypatch):
    scores = ran[0].parent / "out/cells/people/baseline/seed-0/evaluate"
    kept = {file.name: file.read_bytes() for file in scores.iterdir() if file.is_file()}
    started = jobs_of(monkeypatch, "")
    comparison, changed = read_comparison(ran[0], ["evaluate.max_new_tokens=4"])
    run.run_comparison(comparison, changed, force=True)
    assert started == ["people/baseline/seed-0", "people/broken/seed-0"]
    assert not (scores / "summary.json").exists()
    for name, data in kept.items():
        (scores / name).write_bytes(data)


@pytest.mark.parametrize(
    ("name", "content", "flag"),
    [
        ("train/key.json", '{"co', " --force"),
        ("train/key.json", "[]", " --force"),
        ("evaluate/key.json", '{"co', ""),
        ("evaluate/summary.json", None, ""),
        ("evaluate/scores.jsonl", None, ""),
    ],
)
def test_a_damaged_cell_is_refused_by_name_and_made_anew_by_force(ran, monkeypatch, name, content, flag):
    folder = ran[0].parent / "out/cells/people/baseline/seed-0"
    kept = {path: path.read_bytes() for path in (folder / "evaluate").iterdir() if path.is_file()}
    kept |= {folder / name: (folder / name).read_bytes()}
    (folder / name).unlink() if content is None else (folder / name).write_text(content)
    started = jobs_of(monkeypatch, "raise SystemExit('error: again')")
    comparison, none = read_comparison(ran[0])
    try:
        refused = run.run_comparison(comparison, none).cells[0]
        assert (refused.state, started) == ("failed", ["people/broken/seed-0"])
        assert f"{folder / name}: {'missing' if content is None else 'cannot be read'}" in refused.reason
        assert "--force" in refused.reason
        run.run_comparison(comparison, none, force=True)
        assert started[1] == f"people/baseline/seed-0{flag}"
        assert (folder / "evaluate/manifest.json").exists() == bool(flag)
    finally:
        for path, data in kept.items():
            path.write_bytes(data)


def test_segmented_data_with_a_damaged_manifest_is_made_again(ran, monkeypatch, capsys):
    (manifest,) = (ran[0].parent / "out/segmented").glob("*/segmented/manifest.json")
    kept = manifest.read_bytes()
    manifest.write_text("{")
    started = jobs_of(monkeypatch, "raise SystemExit('error: again')")
    run.run_comparison(*read_comparison(ran[0]))
    manifest.write_bytes(kept)
    assert started == [f"{manifest.parent.parent.name} --force"]
    assert f"{manifest}: cannot be read" in "".join(capsys.readouterr().err.split("\n"))


def test_finished_cells_that_a_comparison_no_longer_has_are_named(ran, monkeypatch, capsys):
    jobs_of(monkeypatch, "raise SystemExit('error: again')")
    run.run_comparison(*read_comparison(ran[0], ["seeds=[5]"]))
    assert "1 finished cells are none of this comparison's" in capsys.readouterr().err
    run.run_comparison(*read_comparison(ran[0]))
    assert "none of this comparison's" not in capsys.readouterr().err


def test_a_dry_run_lists_the_cells_and_writes_nothing(ran, monkeypatch, capsys):
    before = {path: path.read_bytes() for path in ran[0].parent.rglob("*") if path.is_file()}
    code, out, _ = call(monkeypatch, capsys, ran[0], "--dry-run", "--json")
    cells = json.loads(out)["cells"]
    assert code == 0
    assert [(cell["method"], cell["state"]) for cell in cells] == [("baseline", "finished"), ("broken", "waiting")]
    assert all(cell["steps"] == 4 and cell["tokens"] > 400 and cell["segmented"] for cell in cells)
    code, out, _ = call(monkeypatch, capsys, ran[0], "--dry-run", "--set", "train.weight_decay=0.5")
    assert code == 0
    assert out.count("train.weight_decay: 0.0 -> 0.5") == 1
    assert all(len(line) <= 80 for line in out.splitlines()[:3])
    assert {path: path.read_bytes() for path in ran[0].parent.rglob("*") if path.is_file()} == before


def test_segmenting_that_fails_fails_the_cells_that_need_it_alone(tmp_path, monkeypatch):
    methods = {"baseline": METHODS["baseline"], "ngram": {"segment": {"segmenter": "ngram"}}}
    made = []

    def job(label, folder, config, command, *, force=False):
        made.append((command, label))
        bad = command == "preprocess" and config.segment.segmenter == "ngram"
        return Job(
            label, (sys.executable, "-c", f"raise SystemExit({'no room' if bad else ''!r} or 0)"), folder / "log.txt"
        )

    monkeypatch.setattr(run, "_job", job)
    cells = run.run_comparison(*read_comparison(write(tmp_path, methods=methods))).cells
    assert [cell.state for cell in cells] == ["finished", "failed"]
    assert "no room" in cells[1].reason
    assert [command for command, _ in made] == ["preprocess", "preprocess", "run"]


def test_a_signal_ends_with_75_and_leaves_cells_that_wait(tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    program = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGTERM); time.sleep(60)"
    jobs_of(monkeypatch, program)
    with pytest.raises(StoppedError, match="stopped by SIGTERM: 0 of 2 cells are finished") as raised:
        run.run_comparison(*read_comparison(write(tmp_path)))
    assert raised.value.exit_code == 75
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_comparison_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    comparison, none = read_comparison(write(tmp_path))
    with sole_writer(tmp_path / "out"), pytest.raises(StaleError, match="another `spt compare` is running here"):
        run.run_comparison(comparison, none)


def test_a_list_of_cells_that_is_missing_or_damaged_says_what_to_do(tmp_path):
    with pytest.raises(MissingError, match="run `spt compare CONFIG` first"):
        read_cells(tmp_path)
    cell = {"experiment": "a", "method": "b", "seed": 0, "folder": "c", "state": "failed", "reason": None}
    good = {"name": "x", "baseline": "y", "cells": [cell | {"budget": {"kind": "epochs", "value": 1}}]}
    (tmp_path / "cells.json").write_text(json.dumps(good))
    assert read_cells(tmp_path).cells[0].label == "a/b/seed-0"
    row = good["cells"][0]
    wrong = [
        {"cells": [{"experiment": "z"}]}, {"cells": None}, {"cells": "abc"}, {"cells": [row, row]}, {"name": 3},
        *({"cells": [row | changed]} for changed in (
            {"state": "perhaps"}, {"state": 3}, {"seed": "0"}, {"seed": -1}, {"budget": None}, {"budget": {}},
            {"budget": {"kind": "epochs", "value": "1"}}, {"folder": 3}, {"reason": 3}, {"method": 3}, {"more": 1},
        )),
    ]  # fmt: skip
    for changed in wrong:
        (tmp_path / "cells.json").write_text(json.dumps(good | changed))
        with pytest.raises(DamagedError, match=r"cells\.json: .* delete it, and run"):
            read_cells(tmp_path)
