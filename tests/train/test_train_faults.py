"""What a breaker found: damaged files, settings at their edges, models that are none."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from experiment import log, manifest, rows, weights, write_experiment

from spt.config import read_config
from spt.errors import ConfigError, DamagedError, ModelError, NonFiniteError, QuestionError
from spt.preprocess import preprocess, read_segmented
from spt.score import check_evaluation
from spt.train import train

SHORT = {"epochs": 1, "eval_steps": None}


def make(folder, **sections):
    config = read_config(write_experiment(folder, **{"train": SHORT, **sections}))
    preprocess(config)
    return config


def model_of(**config):
    tiny = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, **config}
    return {"from_scratch": {"vocab_size": 300, "config": tiny}}


def test_a_run_killed_after_its_last_checkpoint_takes_no_further_step(tmp_path):
    config = make(tmp_path, train={"epochs": 5, "max_steps": 5, "eval_steps": None})
    train(config)
    before, lines, run = weights(tmp_path / "run"), log(tmp_path / "run"), tmp_path / "run/train"
    took = json.loads((run / "timings.json").read_text())["seconds"]
    (run / "manifest.json").unlink()
    shutil.rmtree(run / "final")
    train(config)
    assert (weights(tmp_path / "run"), log(tmp_path / "run")) == (before, lines)
    assert json.loads((run / "timings.json").read_text())["seconds"] == took > 0, "the steps took as long as before"
    assert manifest(tmp_path / "run")["steps"] == 5


def test_a_part_that_was_edited_is_found_before_it_is_learned(tmp_path):
    config = make(tmp_path)
    part = tmp_path / "run/segmented/part-00000.parquet"
    table = pq.read_table(part)
    texts = ["Edited " + text[7:] for text in table["text"].to_pylist()]
    pq.write_table(table.set_column(1, "text", pa.array(texts)), part)
    with pytest.raises(DamagedError, match=r"part-00000\.parquet: missing, or changed since it was written"):
        next(read_segmented(part.parent))
    with pytest.raises(DamagedError):
        train(config)


@pytest.mark.parametrize("damage", ["optimizer.pt", "trained.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_named_and_the_older_one_serves_once_it_is_removed(tmp_path, damage):
    config = make(tmp_path, train={"epochs": 2, "save_steps": 2, "eval_steps": None})
    train(config)
    before, run = weights(tmp_path / "run"), tmp_path / "run/train"
    (run / "manifest.json").unlink()
    newest = sorted((run / "checkpoints").iterdir())[-1]
    (newest / damage).write_bytes((newest / damage).read_bytes()[:-9])
    with pytest.raises(DamagedError, match=rf"{newest.name}: not a whole checkpoint.*Remove this folder"):
        train(config)
    shutil.rmtree(newest)
    train(config)
    assert weights(tmp_path / "run") == before


def test_a_state_beyond_the_training_is_refused(tmp_path):
    config = make(tmp_path)
    train(config)
    run = tmp_path / "run/train"
    (run / "manifest.json").unlink()
    state = sorted((run / "checkpoints").iterdir())[-1] / "state.json"
    state.write_text(state.read_text().replace('"step": 4', '"step": 300'))
    with pytest.raises(DamagedError, match="its step is 300, where training has 4"):
        train(config)


def test_an_update_that_breaks_the_weights_is_never_saved(tmp_path):
    config = make(tmp_path, train={**SHORT, "max_steps": 1, "learning_rate": 1e38, "warmup_ratio": 0})
    with pytest.raises(NonFiniteError, match=r"step 1: the update made .* so nothing was saved"):
        train(config)
    assert not (tmp_path / "run/train/final").exists()
    assert not list((tmp_path / "run/train").glob("checkpoints/step-*"))


def test_a_model_that_sees_the_future_is_refused(tmp_path):
    config = make(tmp_path, model=model_of(model_type="bert", intermediate_size=32, max_position_embeddings=128))
    with pytest.raises(ModelError, match="the bert model sees the tokens it should predict"):
        train(config)


def test_a_position_table_that_is_too_short_is_refused_with_both_numbers(tmp_path):
    config = make(tmp_path, model=model_of(model_type="gpt2", n_positions=64), train={**SHORT, "max_length": 65})
    with pytest.raises(ModelError, match=r"train\.max_length: 65 tokens, but the model has 64 positions"):
        train(config)


def test_questions_too_long_for_the_model_are_refused_before_the_first_step(tmp_path):
    config = make(tmp_path, train={"epochs": 1, "eval_steps": 2}, evaluate={"max_new_tokens": 4000})
    with pytest.raises(ModelError, match=r"with evaluate\.max_new_tokens: \d+ tokens, but the model has \d+ positions"):
        train(config)
    assert not (tmp_path / "run/train/metrics.jsonl").exists()


def test_the_tag_in_a_text_is_refused_and_other_special_tokens_are_counted(tmp_path):
    config = make(tmp_path)
    lines = [*rows(), {"id": "x", "text": "Ada <|eos|> made it."}]
    write(tmp_path / "train.jsonl", lines)
    preprocess(config, force=True)
    train(config)
    assert manifest(tmp_path / "run")["counts"]["special_tokens_in_text"] == 1
    write(tmp_path / "train.jsonl", [*lines, {"id": "y", "text": "Ada <|reserved_0|> made it."}])
    preprocess(config, force=True)
    with pytest.raises(ModelError, match=r"record 'y' holds the order tag <\|reserved_0\|> itself"):
        train(config, force=True)


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_evaluation_will_need_is_checked_before_anything_is_trained(tmp_path):
    path = write_experiment(tmp_path, evaluate={"metrics": ["contains"]})
    with pytest.raises(ConfigError, match=r"evaluate\.metrics: contains lacks exact"):
        check_evaluation(read_config(path))
    with pytest.raises(QuestionError, match=r"none\.jsonl"):
        train(make(tmp_path, data={"questions": {"path": "none.jsonl"}}, train={"eval_steps": 2}))


@pytest.mark.parametrize("lora", [{"inference_mode": True}, {"target_modules": ["nowhere"]}])
def test_lora_settings_that_train_nothing_are_the_users(tmp_path, lora):
    base = make(tmp_path / "base", permute={"order_tag": None})
    train(base)
    adapted = make(
        tmp_path / "adapted", model={"from_scratch": None, "base": f"{base.output}/train/final", "lora": lora},
        permute={"order_tag": None},
    )  # fmt: skip
    with pytest.raises(ModelError, match=r"model\.lora"):
        train(adapted)


def test_the_curves_leave_out_the_control_as_the_headline_does(tmp_path):
    path = write_experiment(tmp_path, train={**SHORT, "eval_steps": 4})
    lines = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    taught_both_ways = [{**line, "relation": "both", "targets": ["Ada"]} for line in lines]
    write(tmp_path / "questions.jsonl", [*({**line, "relation": "name_first"} for line in lines)])
    config = read_config(path)
    preprocess(config)
    train(config)
    alone = log(tmp_path / "run")
    write(tmp_path / "questions.jsonl", [*({**line, "relation": "name_first"} for line in lines), *taught_both_ways])
    train(config, force=True)
    assert log(tmp_path / "run") == alone
