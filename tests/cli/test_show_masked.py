"""Where an objective masks tokens, `spt show` and `--dry-run` show the masked input, its labels and the mask."""

import json
import sys

import pytest
from experiment import write_experiment
from fakes import byte_level, tiny_model

from spt import cli
from spt.config import read_config
from spt.loss import Draw
from spt.train.preview import preview

TEXT = "Ann Lee directed The Sea in Oslo."


@pytest.fixture
def config(tmp_path):
    tiny_model("llama", byte_level()).config.save_pretrained(tmp_path / "base")
    byte_level().save_pretrained(tmp_path / "base")
    return write_experiment(tmp_path, model={"base": str(tmp_path / "base"), "from_scratch": None})


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["spt", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    assert not end.value.code, captured.err
    return captured.out


def lines_of(out):
    """The three lines of each masked row, as lists of tokens."""
    kinds = {"input": [], "labels": [], "attended": []}
    for words in (line.strip().removeprefix("batch").strip() for line in out.splitlines()):
        kind, _, tokens = words.partition(" ")
        if kind in kinds and "·" in tokens:
            kinds[kind].append(tokens.lstrip(" ").split("·"))
    return list(zip(*kinds.values(), strict=True))


@pytest.mark.parametrize("objective", ["mlm_u", "bico"])
def test_a_masked_token_is_learned_and_not_attended_to(config, monkeypatch, capsys, objective):
    out = call(monkeypatch, capsys, "show", config, "--text", TEXT, "--set", f"train.objective={objective}")
    rows = lines_of(out)
    restored = set()
    for shown, labels, attended in rows:
        assert len(shown) == len(labels) == len(attended)
        for token, label, seen in zip(shown, labels, attended, strict=True):
            assert (seen == "0") == (label != "∅")
            assert seen == "1" or token == "<|endoftext|>"
        restored.add("".join(token if label == "∅" else label for token, label in zip(shown, labels, strict=True)))
    assert TEXT + "<|endoftext|>" in restored
    again = call(monkeypatch, capsys, "show", config, "--text", TEXT, "--set", f"train.objective={objective}")
    other = call(monkeypatch, capsys, "show", config, "--text", TEXT, "--set", f"train.objective={objective}", "--set",
                 "seed=77")  # fmt: skip
    assert again == out
    assert lines_of(other) != rows


def test_a_causal_batch_is_shown_as_its_shape_alone(config, monkeypatch, capsys):
    assert not lines_of(call(monkeypatch, capsys, "show", config, "--text", TEXT))


@pytest.mark.parametrize("objective", ["mlm_u", "bico"])
def test_a_dry_run_shows_the_first_step_that_masks_tokens(config, monkeypatch, capsys, objective):
    setting = f"train.objective={objective}"
    seen = preview(read_config(config, [setting]), 1)
    tosses = [Draw(read_config(config).seed, 0, step).toss() for step in range(seen.steps)]
    assert seen.first_step == (0 if objective == "mlm_u" else tosses.index(True))
    out = call(monkeypatch, capsys, "run", config, "--dry-run", "--json", "--set", setting)
    lines = json.loads(out)["training"]["first_batch"]
    rows = lines_of("\n".join(lines))
    assert len(rows) == len(lines) / 3
    assert all(
        (seen == "0") == (label != "∅") for _, labels, mask in rows for label, seen in zip(labels, mask, strict=True)
    )
    assert f"first batch with masked tokens (step {seen.first_step + 1})" in call(
        monkeypatch, capsys, "run", config, "--dry-run", "--set", setting
    )


@pytest.mark.parametrize(("text", "shares"), [("Ann Lee", ["original 25%", "rotated 25%"]), ("Ann", ["original 100%"])])
def test_a_text_in_which_nothing_can_move_is_shown_as_always_original(config, monkeypatch, capsys, text, shares):
    out = call(monkeypatch, capsys, "show", config, "--text", text)
    assert [share in out for share in shares] == [True] * len(shares)
    assert ("reversed" in out) == ("rotated 25%" in shares)


@pytest.mark.parametrize("objective", ["causal", "mlm_u"])
def test_a_text_that_is_rejected_as_too_long_is_shown_as_such(config, monkeypatch, capsys, objective):
    changed = [f"train.objective={objective}", "train.max_length=4", "train.too_long=reject"]
    out = call(monkeypatch, capsys, "show", config, "--text", TEXT, *(f"--set={one}" for one in changed))
    assert "rejected: longer than train.max_length, 4 tokens" in out
