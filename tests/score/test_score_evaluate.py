"""The stage: what was measured, of which model, and when it is measured again."""

import json
import os
import sys

import pytest
from fakes import byte_level, tiny_model

from spt.config import Config
from spt.errors import ConfigError, InputError, MissingError, ModelError, QuestionError, StaleError
from spt.score import evaluate


@pytest.fixture
def setting(tmp_path):
    tiny_model("llama", byte_level()).save_pretrained(tmp_path / "model")
    byte_level().save_pretrained(tmp_path / "model")
    rows = [
        {
            "id": f"q{n}",
            "fact_id": f"f{n}",
            "direction": direction,
            "prompt": "Ann Lee directed",
            "targets": [f"Sea {n}."],
        }
        for n, direction in enumerate(("forward", "reversed", "forward"))
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "neutral.txt").write_text("The botanist of Oslo.\n\nAnn lives in Lyon.\n")

    def make(**settings):
        own = {"max_new_tokens": 3, "fluency_samples": 5, "neutral_text": str(tmp_path / "neutral.txt")}
        return Config(
            name="t",
            output=str(tmp_path / "run"),
            data={"train": {"path": "x"}, "questions": {"path": str(tmp_path / "questions.jsonl")}},
            segment={"segmenter": "word"},
            model={"base": str(tmp_path / "model")},
            evaluate={**own, **settings},
        )

    make.folder = tmp_path
    return make


def read(folder):
    rows = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    return rows, json.loads((folder / "summary.json").read_text())


def test_an_evaluation_holds_scores_fluency_and_perplexity_before_and_after(setting):
    place = str(setting.folder / "model")
    rows, summary = read(evaluate(setting(), model=place))
    assert [row["id"] for row in rows] == ["q0", "q1", "q2"]
    assert (summary["forward"]["n_questions"], summary["reversed"]["n_questions"]) == (2, 1)
    assert summary["fluency"]["natural_order"]["n"] == 5
    assert summary["perplexity"]["before"] == pytest.approx(summary["perplexity"]["after"])
    assert summary["perplexity"]["n_tokens"] > 5


def test_a_second_run_is_reused_and_a_change_of_any_input_is_not(setting):
    place = setting.folder / "model"
    folder = evaluate(setting(), model=str(place))
    stamp = (folder / "summary.json").stat().st_mtime_ns
    assert evaluate(setting(), model=str(place)) == folder
    assert (folder / "summary.json").stat().st_mtime_ns == stamp
    with pytest.raises(StaleError, match=r"max_new_tokens: 3 -> 4"):
        evaluate(setting(max_new_tokens=4), model=str(place))
    (setting.folder / "neutral.txt").write_text("Another text.\n")
    with pytest.raises(StaleError, match="neutral_text"):
        evaluate(setting(), model=str(place))
    evaluate(setting(), model=str(place), force=True)
    tiny_model("llama", byte_level(), seed=5).save_pretrained(place)
    with pytest.raises(StaleError, match=r"model\.sha256"):
        evaluate(setting(), model=str(place))


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_an_evaluation_replaces_another_only_when_it_is_finished(setting, monkeypatch):
    place = str(setting.folder / "model")
    folder = evaluate(setting(), model=place)
    old = (folder / "summary.json").read_bytes()
    with monkeypatch.context() as patch:
        # By its module: the package's attribute of that name is the function.
        patch.setattr(sys.modules["spt.score.evaluate"], "measure_guards", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(setting(max_new_tokens=4), model=place, force=True)
    assert (folder / ".replaced/summary.json").read_bytes() == old
    monkeypatch.setattr("spt.score.questions.Scorer.score", interrupted)  # all questions are scored
    assert evaluate(setting(max_new_tokens=4), model=place) == folder  # it goes on, and needs no force
    assert not (folder / ".replaced").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metrics": ("contains",)}, "evaluate.metrics: contains lacks exact"),
        ({"metrics": ("exact", "choice"), "headline": "choice"}, "choice needs distractors, and no question has any"),
    ],
)
def test_a_headline_that_cannot_be_measured_is_refused_before_a_model_is_loaded(setting, monkeypatch, settings, said):
    monkeypatch.delattr(sys.modules["spt.score.evaluate"], "load_trained")
    with pytest.raises(ConfigError, match=said):
        evaluate(setting(**settings), model=str(setting.folder / "model"))


@pytest.mark.parametrize(("field", "words"), [("prompt", "the prompt 'Ann"), ("targets", "the answer 'Ann")])
def test_a_text_beyond_the_models_positions_is_named(setting, field, words):
    path, text = setting.folder / "questions.jsonl", "Ann " * 200
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1][field] = [text] if field == "targets" else text
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ModelError, match=rf"{words}.*tokens, but the model has 128 positions"):
        evaluate(setting(), model=str(setting.folder / "model"))


def test_texts_beyond_the_models_positions_are_told_together_before_any_question_is_asked(setting, monkeypatch):
    path = setting.folder / "questions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["targets"], rows[2]["prompt"] = ["Ann " * 200], "Ann " * 200
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.delattr(sys.modules["spt.score.evaluate"], "score_chunks")
    with pytest.raises(ModelError, match=rf"'{rows[0]['id']}': the answer .*; 1 more too long: '{rows[2]['id']}'"):
        evaluate(setting(), model=str(setting.folder / "model"))


def test_a_neutral_text_that_never_ends_is_refused(setting):
    os.mkfifo(setting.folder / "pipe")
    for path in ("/dev/zero", str(setting.folder / "pipe")):
        with pytest.raises(InputError, match="is a folder, pipe or device"):
            evaluate(setting(neutral_text=path), model=str(setting.folder / "model"))


def test_what_is_missing_is_named(setting):
    place = str(setting.folder / "model")
    with pytest.raises(MissingError, match="no finished training; run `spt train CONFIG` first"):
        evaluate(setting())
    (setting.folder / "neutral.txt").write_text(" \n")
    with pytest.raises(InputError, match="holds no text"):
        evaluate(setting(), model=place)
    with pytest.raises(InputError, match=r"nowhere\.txt cannot be read"):
        evaluate(setting(neutral_text="nowhere.txt"), model=place)
    (setting.folder / "questions.jsonl").unlink()
    with pytest.raises(QuestionError, match=r"questions\.jsonl: No such file"):
        evaluate(setting(), model=place)
