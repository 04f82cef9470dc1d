"""A comparison's file becomes cells: each by its own layers alone, and everything wrong is said before one starts."""

from pathlib import Path

import pytest
import yaml
from experiment import write_experiment
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.compare import grid
from spt.compare.cell import Cell, Cells
from spt.compare.check import check_plans
from spt.compare.config import read_comparison
from spt.compare.run import check_failures
from spt.config import read_config
from spt.errors import ConfigError, SptError, WorkError

ROOT = Path(__file__).parents[2]
METHODS = {
    "baseline": {"permute": {"orders": {"original": 1}, "order_tag": None}},
    "spt": {"permute": {"orders": {"original": 1, "reversed": 1}}},
    "words": {"segment": {"segmenter": "ngram", "n": 2}},
}


def write(folder, **values):
    """Return the path of a comparison of three methods on two experiments, with keys replaced."""
    write_experiment(folder, train={"epochs": 2, "eval_steps": None})
    comparison = {
        "name": "grid",
        "output": str(folder / "out"),
        "experiments": {"whole": "experiment.yaml", "short": {"extends": "experiment.yaml", "data": {"limit": 8}}},
        "methods": METHODS,
        "seeds": [0, 1],
    }
    path = folder / "comparison.yaml"
    path.write_text(yaml.safe_dump(comparison | values, sort_keys=False))
    return path


def plans_of(path, *overrides):
    return grid.make_plans(*read_comparison(path, overrides))


def test_cells_come_with_whole_seeds_first_and_share_segmented_data_where_it_is_the_same(tmp_path):
    plans = plans_of(write(tmp_path))
    labels = [plan.cell.label for plan in plans]
    assert labels[:4] == ["whole/baseline/seed-0", "whole/spt/seed-0", "whole/words/seed-0", "short/baseline/seed-0"]
    assert len(set(labels)) == len(labels) == 12
    folders = {label: plan.config.data.segmented for label, plan in zip(labels, plans, strict=True)}
    assert folders["whole/baseline/seed-0"] == folders["whole/spt/seed-0"] == folders["whole/spt/seed-1"]
    assert len(set(folders.values())) == len(grid.shared_folders(plans)) == 4
    assert all(plan.cell.folder == Path(plan.config.output) for plan in plans)


@settings(max_examples=20)
@given(st.data())
def test_a_cell_depends_on_its_own_layers_and_seed_alone(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("grid")
    names = data.draw(st.permutations(list(METHODS)))[: data.draw(st.integers(1, 3))]
    seeds = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True))
    jobs = data.draw(st.integers(1, 5))
    some = plans_of(write(folder, methods={name: METHODS[name] for name in names}, seeds=seeds, jobs=jobs))
    every = {plan.cell.label: plan for plan in plans_of(write(folder, seeds=[0, 1, 2, 3, 4]))}
    for plan in some:
        assert (plan.config, plan.shared) == (every[plan.cell.label].config, every[plan.cell.label].shared)


def test_layers_lie_over_each_other_experiment_method_adapt_and_the_command_line(tmp_path):
    method = {"train": {"epochs": 4, "batch_size": 5, "learning_rate": 0.5}}
    adapt = {"whole": {"spt": {"train": {"batch_size": 6, "learning_rate": 0.25}}}}
    path = write(tmp_path, methods={"spt": method}, adapt=adapt, seeds=[3])
    whole, short = plans_of(path, "train.learning_rate=0.125", "jobs=3")
    train = whole.config.train
    assert (train.epochs, train.batch_size, train.learning_rate, train.logging_steps) == (4, 6, 0.125, 1)
    assert (short.config.train.batch_size, short.config.seed, short.config.data.limit) == (5, 3, 8)


def test_an_override_changes_the_comparison_by_its_keys_and_cells_by_their_sections(tmp_path):
    path = write(tmp_path)
    comparison, for_cells = read_comparison(path, ["seeds=[7]", "train.epochs=9", "methods.spt.train.epochs=5"])
    assert comparison.seeds == (7,)
    assert comparison.methods["spt"]["train"] == {"epochs": 5}
    assert for_cells == ["train.epochs=9"]
    assert comparison.baseline == "baseline"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"max_steps": 7}, {"kind": "steps", "value": 7}),
        ({"epochs": None, "max_tokens": 1000}, {"kind": "tokens", "value": 1000}),
        ({"epochs": 4}, {"kind": "epochs", "value": 4}),
    ],
)
def test_a_cell_says_what_ends_its_training(tmp_path, given, kind):
    plans = plans_of(write(tmp_path, methods={"spt": {"train": given}}))
    assert all(plan.cell.budget == kind for plan in plans)


@pytest.mark.parametrize(
    ("values", "overrides", "said"),
    [
        ({"baseline": "baselin"}, [], r"baseline: 'baselin' is none of methods .* Did you mean baseline\?"),
        ({"adapt": {"hole": {"spt": {}}}}, [], r"adapt: 'hole' is none of experiments .* Did you mean whole\?"),
        ({"adapt": {"whole": {"stp": {}}}}, [], r"adapt: 'stp' is none of methods .* Did you mean spt\?"),
        ({"seeds": [1, 1]}, [], "holds one twice"),
        ({"seeds": []}, [], "seeds: must not be empty"),
        ({"methods": {"a/b": {}}}, [], "methods: a key must be letters, digits, dots, .*a/b"),
        ({"name": "../up"}, [], "name: must be letters, digits, dots"),
        ({"methods": {"m" * 101: {}}}, [], "at most 100 characters, not 101"),
        ({"seeds": [0.5]}, [], r"seeds\.0: must be a whole number \(given: 0\.5\)$"),
        ({}, ["methods.stp.train.epochs=3"], r"'stp' is none of methods .* Did you mean spt\?"),
        ({}, ["experiments.hole.data.limit=3"], r"'hole' is none of experiments .* Did you mean whole\?"),
        ({"job": 2}, [], r"job: unknown key. Did you mean jobs\?"),
        ({"methods": {"spt": "spt.yaml"}}, [], "spt.yaml, which .*comparison.yaml extends: does not exist"),
        (
            {"methods": {"spt": {"train": {"epoch": 2}}}},
            [],
            r"whole with spt:\n.*train.epoch: unknown key. .* epochs\?",
        ),
        ({}, ["trian.epochs=2"], r"'trian' is neither a key of a comparison .* Did you mean train\?"),
        ({}, ["seed=1"], r"'seed' is neither .* Did you mean seeds\?"),
        ({}, ["data.train.path=nowhere.jsonl"], "nowhere.jsonl"),
        ({}, ["data.questions.path=nowhere.jsonl"], "nowhere.jsonl"),
        ({}, ["data.segmented=nowhere"], "nowhere holds no segmented data"),
        ({}, ["data.questions=null"], "whole with baseline: data.questions is missing"),
        ({}, ["evaluate.headline=bleu", "evaluate.metrics=[exact]"], "headline"),
        ({}, ["train.report_to=nobody"], "nobody"),
        ({}, ["train.max_length=4000"], "train.max_length: 4000 tokens, but the model has 128"),
        (
            {"methods": {"bico": {"train": {"objective": "bico"}}}},
            ["model.from_scratch.config.model_type=gpt2"],
            "bico",
        ),
    ],
)
def test_what_is_wrong_is_said_before_any_cell_starts(tmp_path, values, overrides, said):
    path = write(tmp_path, **values)
    with pytest.raises(SptError, match=said):
        check_plans(plans_of(path, *overrides))
    assert not (tmp_path / "out").exists()


def test_an_experiment_and_a_comparison_each_name_the_command_of_the_other(tmp_path):
    path = write(tmp_path)
    with pytest.raises(ConfigError, match=r"is a comparison .* use `spt compare"):
        read_config(path)
    with pytest.raises(ConfigError, match=r"is an experiment .* use `spt run"):
        read_comparison(ROOT / "configs/demo/spt.yaml")


def test_a_failed_cell_is_told_with_what_its_reason_announces():
    reason = "made with another configuration:\n  train.seed: 1 -> 2\nGive --force."
    cell = Cell("people", "spt", 0, Path("folder"), "failed", {"kind": "epochs", "value": 1}, reason)
    with pytest.raises(WorkError, match=r"people/spt/seed-0: made with another configuration: train.seed: 1 -> 2\n"):
        check_failures(Cells("name", "spt", (cell,)))


def test_a_check_that_fails_names_its_cell(tmp_path):
    path = write(tmp_path, methods=METHODS | {"long": {"train": {"max_length": 4000}}})
    with pytest.raises(SptError) as raised:
        check_plans(plans_of(path))
    assert raised.value.__notes__ == ["cell: whole/long/seed-0"]


COMPARISONS = [
    path.name for path in sorted((ROOT / "configs/compare").glob("*.yaml")) if "\nmethods:" in path.read_text()
]


@pytest.mark.parametrize("path", COMPARISONS)
def test_the_comparisons_that_come_with_spt_hold_only_experiments(path, monkeypatch):
    monkeypatch.setattr(grid, "preprocess_key", lambda config: {"segment": config.segment.stored})
    comparison, _ = read_comparison(ROOT / "configs" / "compare" / path)
    plans = grid.make_plans(comparison, [])
    assert len(plans) == len(comparison.seeds) * len(comparison.methods) * len(comparison.experiments)
    if path == "tiny.yaml":
        assert {file.stem for file in (ROOT / "configs/methods").glob("*.yaml")} <= comparison.methods.keys()


def test_base_models_and_lists_are_short_for_named_experiments_and_methods(tmp_path):
    path = write(tmp_path)
    values = yaml.safe_load(path.read_text())
    del values["experiments"]
    for name, layer in METHODS.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(layer))
    short = {"base": "experiment.yaml", "methods": [f"{name}.yaml" for name in METHODS]}
    path.write_text(yaml.safe_dump(values | short, sort_keys=False))
    plans, wanted = plans_of(path), plans_of(write(tmp_path, experiments={"experiment": "experiment.yaml"}))
    assert [(plan.cell, plan.config) for plan in plans] == [(plan.cell, plan.config) for plan in wanted]
    models = {"models": {"narrow": {"dtype": "float32"}, "wide": {"dtype": "bfloat16"}}}
    path.write_text(yaml.safe_dump(values | short | models, sort_keys=False))
    plans = plans_of(path, "seeds=[3]")
    assert {plan.cell.experiment: plan.config.model.dtype for plan in plans} == {
        "experiment-narrow": "float32", "experiment-wide": "bfloat16",
    }  # fmt: skip
    path.write_text(yaml.safe_dump(values | short | {"models": ["some/Llama-1B", "a/b.gguf"]}, sort_keys=False))
    comparison, _ = read_comparison(path)
    bases = {name: layer["model"]["base"] for name, layer in comparison.experiments.items()}
    assert bases == {"experiment-Llama-1B": "some/Llama-1B", "experiment-b": "a/b.gguf"}
    assert all(layer["model"]["from_scratch"] is None for layer in comparison.experiments.values())


@pytest.mark.parametrize("section", [None, "some/Llama-1B"])
def test_models_replace_a_section_that_holds_no_keys(tmp_path, section):
    experiment = {"extends": "experiment.yaml", "model": section}
    path = write(tmp_path, experiments={"whole": experiment}, models={"wide": {"dtype": "bfloat16"}})
    comparison, _ = read_comparison(path)
    assert comparison.experiments["whole-wide"]["model"]["dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"base": "experiment.yaml"}, "either base"),
        ({"methods": [{"permute": {}}]}, "methods: each must be the path of a file"),
        ({"methods": ["a/spt.yaml", "b/spt.yaml"]}, "would have one name"),
        ({"models": [3]}, "models: each must be a base"),
        ({"models": []}, "models: must not be empty"),
        ({"methods": [""]}, "methods: each must be the path of a file"),
        ({"models": {"one": 3}}, "model"),
    ],
)
def test_a_short_form_that_says_nothing_clear_is_refused(tmp_path, values, said):
    with pytest.raises(SptError, match=said):
        plans_of(write(tmp_path, **values))
