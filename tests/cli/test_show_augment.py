"""`spt show` says what is learned beside a sentence, and why what is not."""

import sys

import pytest
from experiment import write_experiment

from spt import cli

PASSAGE = "Ann Lee sings. She left. Bo Ek paints."


@pytest.fixture
def show(tmp_path, monkeypatch, capsys):
    def shown(*augment, text=PASSAGE):
        path = write_experiment(tmp_path, augment=list(augment))
        monkeypatch.setattr(sys, "argv", ["spt", "show", str(path), "--text", text])
        monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        assert not end.value.code, captured.err
        return [line.removeprefix("augment").strip() for line in captured.out.split("segment ")[0].splitlines()[1:]]

    return shown


def test_what_is_made_of_a_sentence_is_shown_with_the_reason_of_what_is_not(show):
    bridge = {"identity_bridge": {"templates": ["{subject} is {subject}."]}}
    assert show({"sentences": {}}, bridge) == [
        "sentences  Ann Lee sings.",
        "sentences: pronoun_first",
        "sentences  Bo Ek paints.",
        "identity_bridge: no_field",
    ]


def test_where_nothing_is_added_there_is_no_such_row(show):
    assert show() == show({"sentences": {}}, text="Ann Lee sings.") == []


def test_what_needs_a_column_or_an_assistant_says_so(show, tmp_path):
    asked = {"reverse_statements": {"assistant": {"model": str(tmp_path)}, "patterns": ["{subject} has {object}."]}}
    assert show({"repeat": {"column": "times"}}, asked) == [
        "reverse_statements: an assistant is asked by `spt preprocess`",
        "repeat: --text:1: augment.repeat: column 'times' holds None; it must hold how often the record is learned an "
        "epoch, a whole number from 1",
    ]
