"""What is odd on the command line is taken as it is meant, or refused in words: nothing here trains."""

import json

import pytest
import yaml
from experiment import write_experiment
from test_cli import call


def test_output_is_the_folder_that_was_named_whatever_its_characters(tmp_path, monkeypatch, capsys):
    path = write_experiment(tmp_path)
    for name in ("🚤", "a: b", "| x", "a\u0085b", "007", "#"):
        code, out, _ = call(monkeypatch, capsys, "preprocess", path, "--output", tmp_path / name, "--dry-run", "--json")
        assert code == 0
        assert json.loads(out)["output"] == str(tmp_path / name)


@pytest.mark.parametrize(("command", "flag"), [("evaluate", ["--export-lm-eval", "tasks"]), ("compare", ["--report"])])
def test_a_dry_run_of_a_flag_that_only_writes_is_refused(tmp_path, monkeypatch, capsys, command, flag):
    path = write_experiment(tmp_path)
    if command == "compare":
        path = tmp_path / "comparison.yaml"
        path.write_text(yaml.safe_dump({"name": "small", "base": "experiment.yaml", "methods": {"own": {}}}))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, _, err = call(monkeypatch, capsys, command, path, *flag, "--dry-run")
    assert (code, f"{flag[0]} writes" in err) == (2, True)
    assert sorted(tmp_path.iterdir()) == before


def test_what_means_nothing_beside_a_comparison_of_segmentations_is_refused(tmp_path, monkeypatch, capsys):
    for option in (["--limit", "2"], ["--set", "seed=1"], ["--output", tmp_path], ["--force"], ["--dry-run"]):
        code, _, err = call(monkeypatch, capsys, "preprocess", "--compare", tmp_path, tmp_path, *option)
        assert (code, "it takes only --json" in err) == (2, True)


def test_show_takes_the_first_sound_record_where_bad_ones_are_rejected(tmp_path, monkeypatch, capsys):
    path = write_experiment(tmp_path)
    (tmp_path / "train.jsonl").write_text('{"text": " "}\n{"text": "Ada Birch made a boat."}\n')
    code, _, err = call(monkeypatch, capsys, "show", path, "--json")
    assert (code, "train.jsonl:1: empty_text" in err) == (2, True)
    code, out, _ = call(monkeypatch, capsys, "show", path, "--json", "--set", "data.on_error=reject")
    assert (code, json.loads(out)["text"]) == (0, "Ada Birch made a boat.")


def test_show_says_that_a_corpus_is_empty(tmp_path, monkeypatch, capsys):
    path = write_experiment(tmp_path)
    (tmp_path / "train.jsonl").write_text("")
    code, _, err = call(monkeypatch, capsys, "show", path)
    assert (code, err) == (2, "error: the corpus (data.train) has no record to show; give --text\n")


def test_a_wrong_option_of_a_corpus_of_ones_own_is_named_with_its_value(tmp_path, monkeypatch, capsys):
    (tmp_path / "corpus.txt").write_text("Ada Birch made The Sea.\n")
    code, _, err = call(
        monkeypatch, capsys, "benchmark", "make", "--from", tmp_path / "corpus.txt", "--set", "pipeline=3"
    )
    assert (code, "--set pipeline=NAME; given: pipeline=3" in err) == (2, True)
