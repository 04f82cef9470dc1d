"""An evaluation in two real processes holds what one process finds: every question once, in order, with its values."""

import json

import pytest
from experiment import spt, write_experiment
from fakes import byte_level, tiny_model

from spt.artifact import read_json
from spt.benchmark.guards import write_guards
from spt.config import read_config
from spt.records import Guard
from spt.score.evaluate import evaluate
from spt.score.questions import RANKED_CHUNK

COUNT = 2 * RANKED_CHUNK + 5
"""Questions of three chunks in one process, and of two in two processes, the last of them uneven."""


def write_questions(folder):
    rows = [
        {
            "id": f"q{n}", "fact_id": f"f{n // 2}", "direction": ("forward", "reversed")[n % 2],
            "prompt": "Ann Lee directed" + " the Sea" * (n % 7),
            "targets": [f"Lake number {n}.", f"Sea {n}."][: 1 + n % 2],
            **({"distractors": ["Oslo", "Lyon"]} if n % 3 else {}),
        }
        for n in range(COUNT)
    ]  # fmt: skip
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_guards(folder / "guards.jsonl", [Guard("g", "g", "non_reciprocal", "The mother of Ann is", ("Bob",))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    for part in (tiny_model("llama", byte_level()), byte_level()):
        part.save_pretrained(folder / "model")
    settings = {"metrics": ["exact", "token_f1", "logprob", "choice", "mrr"], "floor_targets": 4, "batch_size": 5}
    write_experiment(
        folder, model={"base": str(folder / "model"), "from_scratch": None}, evaluate={"max_new_tokens": 4, **settings}
    )
    write_questions(folder)
    return folder


def rows_of(place):
    return [json.loads(line) for line in (place / "scores.jsonl").read_text().splitlines()]


def alike(left, right):
    """Return whether two JSON values are equal but for the seventh digit of a number."""
    if isinstance(left, float) and isinstance(right, float):
        return left == pytest.approx(right, rel=1e-6, abs=1e-9)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(left[name], right[name]) for name in left)
    return left == right


def test_two_processes_find_what_one_finds_and_each_question_once(folder):
    path, model = folder / "experiment.yaml", str(folder / "model")
    alone = evaluate(read_config(path, [f"output={folder / 'one'}"]), model=model)
    said = spt("evaluate", path, "--model", model, "--output", folder / "two", "--launch", 2, "--json")
    together = folder / "two" / "evaluate"
    assert [row["id"] for row in rows_of(together)] == [f"q{n}" for n in range(COUNT)]
    assert alike(rows_of(together), rows_of(alone))
    assert len({row["logprob"] for row in rows_of(alone)}) > COUNT / 2  # the model tells the questions apart
    assert alike(read_json(together / "summary.json"), read_json(alone / "summary.json"))
    assert alike(json.loads(said.stdout), read_json(alone / "summary.json"))
