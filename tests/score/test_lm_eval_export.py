"""The exported tasks run in lm-evaluation-harness, and both say the same of the same model."""

import importlib.util
import json
import subprocess
import sys

import pytest
from experiment import environment, write_experiment
from fakes import TOKENIZERS, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from spt.benchmark.questions import write_questions
from spt.config import read_config
from spt.errors import InputError
from spt.metrics import match
from spt.records import Question
from spt.score.likelihood import continuation_examples, example_log_probabilities
from spt.score.lm_eval import export_lm_eval

HARNESS = importlib.util.find_spec("lm_eval") is not None
ASKED = [
    Question("plain", "1", "forward", "Ann Lee directed", ("The Sea.",), ("abc NOP", "Daphne Barrington")),
    Question("space", "2", "forward", "Uriah Hawthorne lives in ", (" Oslo", "Lyon"), ("Zoë",)),
    Question("own space", "3", "forward", "the botanist is", (" Uriah Hawthorne",), ("\tAnn",)),
    Question("none", "4", "reversed", "The Sea was directed by", ("Ann Lee",)),
    Question("others", "5", "reversed", "the botanist of Oslo is", ("Uriah Hawthorne",)),
    Question("date", "6", "reversed", "it was in", ("1988-03-03",)),
]


def exported(folder, asked=ASKED, **sections):
    path = write_experiment(folder, **sections)
    write_questions(folder / "questions.jsonl", asked)
    return export_lm_eval(read_config(path), folder / "tasks")


def choices(folder, direction):
    lines = (folder / "tasks" / f"{direction}.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["choices"] for row in map(json.loads, lines)}


def test_choices_are_the_distractors_or_other_facts_answers_each_joined_as_we_join(tmp_path):
    counts = exported(tmp_path)
    assert counts == {"spt_forward": 3, "spt_forward_mc": 3, "spt_reversed": 3, "spt_reversed_mc": 3}
    assert choices(tmp_path, "forward") == {
        "plain": [" The Sea.", " abc NOP", " Daphne Barrington"],
        "space": [" Oslo", "Zoë"],
        "own space": [" Uriah Hawthorne", "\tAnn"],
    }
    reversed_ = choices(tmp_path, "reversed")
    assert reversed_["none"][0] == " Ann Lee"
    assert sorted(reversed_["none"][1:]) == [" 1988-03-03", " Uriah Hawthorne"]


def test_as_many_other_facts_are_chosen_among_as_make_the_floor(tmp_path):
    counts = exported(tmp_path, evaluate={"floor_targets": 1})
    assert [len(own) for own in choices(tmp_path, "reversed").values()] == [2, 2, 2]
    assert counts["spt_reversed_mc"] == 3
    counts = exported(tmp_path / "none", evaluate={"floor_targets": 0})
    assert counts == {"spt_forward": 3, "spt_forward_mc": 3, "spt_reversed": 3, "spt_reversed_mc": 0}


def test_a_direction_without_choices_gets_no_multiple_choice(tmp_path):
    counts = exported(tmp_path, [ASKED[0], ASKED[3]])
    assert counts["spt_reversed_mc"] == 0
    assert not (tmp_path / "tasks/spt_reversed_mc.yaml").exists()
    assert "spt_reversed_mc" not in (tmp_path / "tasks/spt.yaml").read_text()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/thesis.txt").touch()
    with pytest.raises(InputError, match=r"thesis\.txt, which is none of these tasks"):
        exported(tmp_path)


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    exported(folder)
    spec = importlib.util.spec_from_file_location("spt_functions", folder / "tasks/spt_functions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(prediction=st.text("aA .!'é \n"), target=st.text("aA .!'é "))
def test_the_exported_rules_are_ours(functions, prediction, target):
    first = prediction.split("\n", 1)[0].strip()
    assert functions.judge({"targets": [target, "zz"]}, [prediction]) == {
        name: float(getattr(match, name)(first, target)) for name in ("exact", "startswith", "contains")
    }


@pytest.mark.full
@pytest.mark.skipif(not HARNESS, reason="lm-evaluation-harness is not installed: pip install 'spt-llm[lm-eval]'")
@pytest.mark.parametrize("kind", ["byte_level", "metaspace"])
def test_the_harness_runs_the_tasks_and_gives_our_log_probabilities(tmp_path, kind):
    tokenizer = TOKENIZERS[kind]()
    model = tiny_model("llama", tokenizer, seed=2)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    exported(tmp_path, evaluate={"max_new_tokens": 6})
    done = subprocess.run(
        [
            sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args",
            f"pretrained={tmp_path / 'model'},dtype=float32", "--device", "cpu", "--batch_size", "3", "--include_path",
            tmp_path / "tasks", "--tasks", "spt", "--log_samples", "--output_path", tmp_path / "out",
        ],
        env=environment() | {"HF_DATASETS_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    samples = {name: samples_of(tmp_path / "out", name) for name in ("spt_forward_mc", "spt_reversed_mc")}
    assert [len(samples_of(tmp_path / "out", name)) for name in ("spt_forward", "spt_reversed")] == [3, 3]
    theirs, pairs = [], []
    for sample in (*samples["spt_forward_mc"], *samples["spt_reversed_mc"]):
        for choice, answer in zip(sample["doc"]["choices"], sample["filtered_resps"], strict=True):
            theirs.append(float(answer[0]))
            pairs.append((sample["doc"]["prompt"], choice))
    ours = [nats for nats, _ in example_log_probabilities(model, continuation_examples(tokenizer, pairs), 4)]
    assert len(ours) == 7 + 9
    assert ours == pytest.approx(theirs, abs=1e-4)


def samples_of(folder, task):
    (path,) = (path for path in folder.rglob("samples_*.jsonl") if path.name.startswith(f"samples_{task}_2"))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
