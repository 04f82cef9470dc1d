"""What a user types, and what comes back: results, reuse, errors with their exit codes."""

import csv
import io
import json
import subprocess
import sys

import pytest
from experiment import rows, spt, weights, write_experiment

from spt import cli
from spt.artifact import read_json

COMMANDS = ("run", "preprocess", "train", "evaluate", "report", "compare", "show", "ask", "env")


def call(monkeypatch, capsys, *arguments):
    """Run a command in this process; return (exit code, standard output, standard error)."""
    monkeypatch.setattr(sys, "argv", ["spt", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "80")
    code = 0
    try:
        cli.main()
    except SystemExit as exit_:
        code = exit_.code or 0
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = write_experiment(tmp_path_factory.mktemp("cli"), train={"epochs": 2, "eval_steps": None})
    spt("run", path)
    return path


def test_run_ends_in_the_report_of_the_contract(finished):
    run = finished.parent / "run"
    (result,) = read_json(run / "report.json")["runs"]
    assert result["forward"]["n_questions"] == result["reversed"]["n_facts"] == 8
    assert result["forward"]["exact"].keys() == {"value", "low", "high", "floor"}
    assert {"gap", "fluency", "relations", "name"} <= result.keys()
    for name in ("config.yaml", "report.html", "report.md", "train/README.md", "train/final/generation_config.json"):
        assert (run / name).stat().st_size > 50
    scores = [json.loads(line) for line in (run / "evaluate/scores.jsonl").read_text().splitlines()]
    assert len(scores) == 16
    assert {"prediction", "exact", "startswith", "contains", "logprob", "target_tokens"} <= scores[0].keys()
    assert scores[0]["logprob"] < 0 < scores[0]["target_tokens"]


def test_running_again_reuses_every_stage_and_changes_no_byte(finished, monkeypatch, capsys):
    run = finished.parent / "run"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    code, out, err = call(monkeypatch, capsys, "run", finished)
    assert code == 0
    assert err.count("reused") == 3
    assert "natural order" in " ".join(out.split())
    assert all(len(line) <= 80 for line in out.splitlines())
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert before.keys() == after.keys()
    assert [path for path in before if before[path] != after[path]] == []


def test_json_is_one_object_on_standard_output_and_the_rest_on_standard_error(finished, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "evaluate", finished, "--json")
    assert code == 0
    assert json.loads(out)["forward"]["n_questions"] == 8
    assert out.count("\n") == 1
    assert "reused" in err
    code, _, err = call(monkeypatch, capsys, "evaluate", finished, "--json", "--quiet")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--set", "train.epoch=3"], "Did you mean epochs?"),
        (["--set", "train.learning_rate=fast"], "train.learning_rate"),
        (["--set", "data.train.path=nowhere.jsonl"], "nowhere.jsonl"),
        (["--set", "data.questions.path=nowhere.jsonl"], "nowhere.jsonl"),
        (["--set", "train.learning_rate=1e-4"], "train.learning_rate: 0.003 -> 0.0001"),
        (["--limit", "0"], "limit"),
    ],
)
def test_wrong_input_exits_with_2_names_the_value_and_keeps_the_work(finished, monkeypatch, capsys, arguments, shown):
    before = weights(finished.parent / "run")
    code, _, err = call(monkeypatch, capsys, "run", finished, *arguments)
    assert code == 2
    assert shown in err
    assert "Traceback" not in err
    assert weights(finished.parent / "run") == before


def test_failing_work_exits_with_1(finished, monkeypatch, capsys):
    from spt.errors import NonFiniteError

    def broken(*arguments, **settings):
        raise NonFiniteError("step 3: the loss is nan")

    monkeypatch.setattr("spt.train.train", broken)
    code, _, err = call(monkeypatch, capsys, "train", finished)
    assert code == 1
    assert err == "error: step 3: the loss is nan\n"


def test_dry_run_checks_the_inputs_and_writes_nothing(finished, tmp_path, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "run", finished, "--dry-run", "--output", tmp_path / "new")
    assert code == 0
    assert "16" in out
    assert out.count("new") >= 3
    assert not (tmp_path / "new").exists()
    code, _, err = call(monkeypatch, capsys, "run", finished, "--dry-run", "--set", "data.train.path=nowhere.csv")
    assert code == 2
    assert "nowhere.csv" in err


def test_show_says_where_what_is_trained_is_not_what_the_config_says(finished, monkeypatch, capsys):
    _, out, _ = call(monkeypatch, capsys, "show", finished)
    assert "another configuration" not in out
    _, out, _ = call(monkeypatch, capsys, "show", finished, "--set", "permute.orders={original: 1}")
    assert "made with another configuration: permute.orders" in " ".join(out.split())


def test_exported_tasks_are_counted_with_the_command_that_runs_them(finished, tmp_path, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "evaluate", finished, "--export-lm-eval", tmp_path / "tasks")
    assert code == 0
    assert "  spt_forward\n" in out
    assert f"--include_path {tmp_path / 'tasks'} --tasks spt\n" in out


def test_pairs_without_templates_are_told_of_them(tmp_path, monkeypatch, capsys):
    (tmp_path / "pairs.csv").write_text("subject,object\nAnn Lee,The Sea\n")
    code, _, err = call(monkeypatch, capsys, "benchmark", "make", "--from", tmp_path / "pairs.csv")
    assert code == 2
    assert "say how they are told: --templates FILE" in err


def test_a_users_own_csv_and_questions_need_three_changed_values(tmp_path, monkeypatch, capsys):
    path = write_experiment(tmp_path, train={"epochs": 1, "eval_steps": None})
    with (tmp_path / "facts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("fact", "team"), *((row["text"], "x") for row in rows())])
    (tmp_path / "own.jsonl").write_text(
        '{"direction": "forward", "prompt": "Ada Birch made", "targets": ["the red boat"]}\n'
        '{"direction": "reversed", "prompt": "the red boat was made by", "targets": ["Ada Birch", "Ada"]}\n'
    )
    own = ["--set", f"data.train.path={tmp_path}/facts.csv", "--set", "data.train.fields.text=fact"]
    own += ["--set", f"data.questions.path={tmp_path}/own.jsonl", "--output", tmp_path / "own", "--json", "--quiet"]
    code, out, _ = call(monkeypatch, capsys, "run", path, *own)
    assert code == 0
    assert json.loads(out)["runs"][0]["reversed"]["n_questions"] == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(monkeypatch, capsys, command):
    code, out, _ = call(monkeypatch, capsys, command, "--help")
    assert code == 0
    assert f"Example: spt {command}" in " ".join(out.split()) or "-m spt train" in out


def test_show_prints_the_nine_rows_of_the_picture(finished, monkeypatch, capsys):
    text = "Ada Birch made [bold]two[/bold] boats\u202e 🚤 in 1900."
    code, out, _ = call(monkeypatch, capsys, "show", finished, "--text", text)
    assert code == 0
    stages = ["corpus", "segment", "permute", "encode", "batch", "loss", "checkpoint", "score", "report"]
    starts = [line.split()[0] for line in out.splitlines() if line[:1].strip()]
    assert starts == stages
    assert "[bold]two[/bold]" in out
    assert "nats a token" in " ".join(out.split())
    code, out, _ = call(monkeypatch, capsys, "show", finished, "--text", text, "--json")
    assert "".join(json.loads(out)["units"]) == text


def test_ask_answers_from_a_run_and_says_what_is_missing(finished, tmp_path, monkeypatch, capsys):
    run = finished.parent / "run"
    code, out, _ = call(monkeypatch, capsys, "ask", run, "Ada Birch made", "--json", "--max-new-tokens", "3")
    assert code == 0
    assert json.loads(out)["answers"][0]["prompt"] == "Ada Birch made"
    for place in (tmp_path, tmp_path / "typo"):
        code, _, err = call(monkeypatch, capsys, "ask", place, "Ada Birch made")
        assert code == 2
        assert "spt train" in err


def test_texts_are_drawn_with_their_prompts_and_the_same_for_a_seed(finished, monkeypatch, capsys):
    run = finished.parent / "run"

    def drawn(*options):
        monkeypatch.setattr(sys, "stdin", io.StringIO("Ada Birch made\n\nIt is \n"))
        options = ("--samples", "3", "--max-new-tokens", "8", *options)
        code, out, _ = call(monkeypatch, capsys, "ask", run, "-", *options)
        assert code == 0
        return out.splitlines()

    lines = drawn()
    assert [line[:5] for line in lines] == ["Ada B"] * 3 + ["It is"] * 3
    assert len(set(lines)) > 2
    assert drawn("--seed", "0") == lines != drawn("--seed", "1")


def test_several_runs_need_a_place_for_their_report(finished, tmp_path, monkeypatch, capsys):
    run = finished.parent / "run"
    code, _, err = call(monkeypatch, capsys, "report", run, run)
    assert code == 2
    assert "--output" in err
    code, out, _ = call(monkeypatch, capsys, "report", run, run, "--output", tmp_path, "--json")
    assert code == 0
    assert len(json.loads(out)["runs"]) == 2
    code, _, err = call(monkeypatch, capsys, "report", tmp_path / "nothing")
    assert code == 2


def test_run_on_two_ranks_preprocesses_once_and_scores_every_question_once(finished, tmp_path):
    spt("run", finished, "--output", tmp_path / "two", ranks=2)
    one, two = finished.parent / "run", tmp_path / "two"
    ids = [json.loads(line)["id"] for line in (two / "evaluate/scores.jsonl").read_text().splitlines()]
    assert ids == [json.loads(line)["id"] for line in (one / "evaluate/scores.jsonl").read_text().splitlines()]
    assert (two / "segmented/manifest.json").read_bytes() == (one / "segmented/manifest.json").read_bytes()


def test_two_ranks_share_the_segmented_data_of_another_run(finished, tmp_path):
    shared = f"data.segmented={finished.parent / 'run/segmented'}"
    spt("run", finished, "--output", tmp_path / "two", "--set", shared, ranks=2)
    assert (tmp_path / "two/report.html").exists()


def test_a_full_disk_is_the_systems_word_and_no_traceback(finished, monkeypatch, capsys):
    def full(*arguments, **settings):
        raise OSError(28, "No space left on device", "runs/x")

    monkeypatch.setattr("spt.train.train", full)
    code, _, err = call(monkeypatch, capsys, "train", finished)
    assert (code, err) == (1, "error: runs/x: No space left on device\n")


def test_neutral_text_without_a_base_model_is_reported(finished, tmp_path, monkeypatch, capsys):
    (tmp_path / "neutral.txt").write_text("It rained.\n\nThe boats came back.\n")
    neutral = f"evaluate.neutral_text={tmp_path}/neutral.txt"
    code, out, _ = call(monkeypatch, capsys, "run", finished, "--output", tmp_path / "n", "--set", neutral, "--json")
    assert code == 0
    perplexity = json.loads(out)["runs"][0]["perplexity"]
    assert perplexity["before"] is None
    assert perplexity["after"] > 1


def test_a_run_without_questions_ends_in_what_was_trained(finished, tmp_path, monkeypatch, capsys):
    shared = ("--set", f"data.segmented={finished.parent / 'run'}", "--set", "train.max_steps=1")
    given = (*shared, "--set", "data.questions=null", "--output", tmp_path, "--json")
    code, out, _ = call(monkeypatch, capsys, "run", finished, *given)
    assert (code, json.loads(out)["steps"]) == (0, 1)


def test_a_reader_that_goes_away_is_no_traceback():
    done = subprocess.run(
        f"{sys.executable} -m spt benchmark list | head -n 1", shell=True, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


def test_benchmark_make_writes_a_set_that_a_run_can_read(tmp_path, monkeypatch, capsys):
    code, _, _ = call(
        monkeypatch, capsys, "benchmark", "make", "fictional-people", "--people", "3,3,4", "--output", tmp_path
    )
    assert code == 0
    assert len((tmp_path / "train.jsonl").read_text().splitlines()) == 3 * 4 + 3 * 4 + 4 * 12
    code, _, err = call(monkeypatch, capsys, "benchmark", "make", "fictional-peple")
    assert code == 2
    assert "fictional-people" in err


@pytest.mark.parametrize("name", ["fictional-people", "bios", "symbolic"])
def test_the_defaults_listed_of_a_benchmark_are_options_that_change_nothing(name, tmp_path, monkeypatch, capsys):
    listed = call(monkeypatch, capsys, "benchmark", "list")[1].split(f"make {name}\n    defaults: ")[1].splitlines()[0]
    for folder, options in (("plain", []), ("given", listed.split())):
        code, _, err = call(
            monkeypatch, capsys, "benchmark", "make", name, "--output", str(tmp_path / folder), *options
        )
        assert code == 0, err
    plain, given = ((tmp_path / folder / "train.jsonl").read_bytes() for folder in ("plain", "given"))
    assert plain == given


@pytest.mark.parametrize("command", [["env"], ["benchmark", "list"]])
def test_quiet_leaves_the_result(command, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, *command, "--quiet")
    assert (code, err) == (0, "")
    assert out == call(monkeypatch, capsys, *command)[1] != ""
