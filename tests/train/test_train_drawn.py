"""Training on units that are drawn anew each epoch: a pure function of the experiment, and part of its key."""

import pytest
from experiment import write_experiment
from streams import examples_of, stream_of

import spt.train.setup
from spt.config import read_config
from spt.errors import StaleError
from spt.preprocess import preprocess
from spt.train.setup import train_key


def examples(steps):
    """Return the examples of each step, whatever the rank and micro-batch they came in."""
    return [examples_of(batch for part in step for batch in part.batches) for step in steps]


@pytest.mark.parametrize("segmenter", ["token", "random"])
def test_drawn_units_are_the_same_after_a_resume_and_on_any_number_of_ranks(tmp_path, segmenter):
    path = write_experiment(
        tmp_path, segment={"segmenter": segmenter}, train={"epochs": 2}, permute={"orders": {"shuffled": 1}}
    )
    preprocess(read_config(path))
    whole = examples([step] for step in stream_of(path).steps(0))
    assert len(whole) == 8
    assert examples([step] for step in stream_of(path).steps(5)) == whole[5:]
    parts = [stream_of(path, rank=rank, world_size=3).steps(0) for rank in range(3)]
    assert examples(zip(*parts, strict=True)) == whole
    epochs = [{row for step in steps for row in step} for steps in (whole[:4], whole[4:])]
    assert len(epochs[0] & epochs[1]) < 5


def test_the_units_drawn_are_in_the_key_of_training_and_not_in_that_of_the_data(tmp_path):
    path = write_experiment(tmp_path, segment={"segmenter": "random"})
    preprocess(read_config(path))
    longer = read_config(path, ["segment.max_words=4"])
    preprocess(longer)
    assert train_key(read_config(path))["segment"] == {"max_words": 10}
    assert train_key(longer)["segment"] == {"max_words": 4}


def test_the_code_that_asks_is_in_the_key_of_a_training_that_asks(tmp_path, monkeypatch):
    monkeypatch.setattr(spt.train.setup, "hash_code", lambda *modules: {module.__name__ for module in modules})
    path = write_experiment(tmp_path)
    preprocess(read_config(path))
    asking, silent = (train_key(read_config(path, given))["code"] for given in ([], ["train.eval_steps=null"]))
    assert silent >= {"spt.permute", "spt.config.permute", "spt.train"}
    assert asking - silent == {"spt.benchmark", "spt.metrics", "spt.score", "spt.statistics"}


def test_data_that_another_segmenter_cut_is_refused(tmp_path):
    path = write_experiment(tmp_path)
    preprocess(read_config(path))
    with pytest.raises(StaleError, match=r'segment\.segmenter: "word" -> "random"'):
        train_key(read_config(path, ["segment.segmenter=random"]))
