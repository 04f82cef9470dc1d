import pytest
from experiment import log, manifest, spt, weights, write_experiment
from safetensors.torch import load_file

from spt.checkpoint import State
from spt.config import read_config
from spt.errors import ConfigError
from spt.train.best import Best, make_watch

PATIENT = {"eval_steps": 2, "early_stopping_patience": 2, "metric_for_best_model": "forward.startswith"}


def test_a_gain_resets_the_patience_and_a_tie_is_no_gain():
    best, state = Best("reversed", "exact", 2), State()
    seen = []
    for step, value in enumerate((0.1, 0.1, 0.3, 0.2, 0.3), 1):
        state.step = step
        seen.append((best.note(state, {"reversed": {"exact": value}}), best.exhausted(state)))
    assert seen == [(True, False), (False, False), (True, False), (False, False), (False, True)]
    assert (state.best, state.best_step) == (0.3, 3)


@pytest.mark.parametrize("name", ["sideways.exact", "reversed.bleurt", "exact", "reversed.mrr"])
def test_a_metric_that_is_not_measured_is_refused_with_those_that_are(tmp_path, name):
    path = write_experiment(tmp_path, train={"metric_for_best_model": name})
    with pytest.raises(ConfigError, match=r"DIRECTION.METRIC with a direction .*forward, reversed.*exact"):
        make_watch(read_config(path))


def test_what_watches_answers_needs_questions(tmp_path):
    path = write_experiment(tmp_path, train={"eval_steps": None, "early_stopping_patience": 1})
    with pytest.raises(ConfigError, match=r"early_stopping_patience needs train.eval_steps"):
        read_config(path)


def test_training_stops_early_keeps_the_best_checkpoint_and_ends_with_its_weights(tmp_path):
    # Nothing is learned at this rate, so that the first evaluation is the best.
    path = write_experiment(
        tmp_path,
        train={
            **PATIENT, "learning_rate": 1e-9, "load_best_model_at_end": True, "save_total_limit": 1, "logging_steps": 4,
        },
    )  # fmt: skip
    spt("preprocess", path)
    spt("train", path)
    run = tmp_path / "run"
    asked = [line["step"] for line in log(run) if "evaluate" in line]
    assert asked == [2, 4, 6]
    assert [line["step"] for line in log(run) if "loss" in line] == [4, 6], "no step is left out"
    assert manifest(run)["steps"] == 6
    assert manifest(run)["best"]["step"] == 2
    kept = sorted(folder.name for folder in (run / "train/checkpoints").iterdir())
    assert kept == ["step-000002", "step-000006"]
    final = load_file(next((run / "train/final").glob("*.safetensors")))
    best = load_file(run / "train/checkpoints/step-000002/trained.safetensors")
    pairs = [(final[name], best[key]) for name in final for key in best if key.endswith(f"model.{name}")]
    assert len(pairs) >= len(final) - 1  # a tied head is kept once
    assert all((one == other).all() for one, other in pairs)
    before = weights(run)
    (run / "train/manifest.json").unlink()
    spt("train", path)  # as if killed while it wrote its last files: it takes no further step
    assert weights(run) == before
    assert manifest(run)["steps"] == 6
