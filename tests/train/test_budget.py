"""A budget in tokens: as many steps as see that many, the same for every rank and every start."""

from dataclasses import replace

import pytest
from experiment import write_experiment
from hypothesis import given
from hypothesis import strategies as st
from streams import stream_of

from spt.config import read_config, write_config
from spt.errors import ConfigError, InputError
from spt.preprocess import preprocess
from spt.train.budget import in_steps
from spt.train.preview import preview

MASKED = {"masked_context": {"probability": 0.5}}
TOKENS = {"epochs": None, "max_tokens": 5000, "eval_steps": None}


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """Forty records in steps of 12, the last of an epoch with 4; half of them with a context drawn anew."""
    path = write_experiment(tmp_path_factory.mktemp("budget"), augment=[MASKED], train=TOKENS)
    preprocess(read_config(path))
    return stream_of(path)


def budget_of(stream, tokens, **settings):
    unlimited = {"max_tokens": tokens, "epochs": None, "max_steps": None}
    return in_steps(replace(stream, train=stream.train.model_copy(update=unlimited | settings)))


@given(tokens=st.integers(1, 30_000))
def test_the_steps_see_the_budget_but_for_less_than_a_step(stream, tokens):
    steps = list(budget_of(stream, tokens).steps(0))
    sizes = [sum(batch.tokens for batch in step.batches) for step in steps]
    assert abs(sum(sizes) - tokens) <= max(sizes) + 0.05 * tokens  # contexts are drawn anew each epoch


def test_ranks_micro_batches_and_workers_change_nothing(stream):
    alone = budget_of(stream, 7000)
    assert alone.total_steps > alone.steps_per_epoch
    for rank in range(3):
        other = budget_of(replace(stream, rank=rank, world_size=3), 7000, micro_batch_size=2, dataloader_num_workers=2)
        assert other.total_steps == alone.total_steps
        assert (other.rank, other.world_size, other.train.dataloader_num_workers) == (rank, 3, 2)


def test_examples_that_are_longer_get_fewer_steps(stream):
    assert budget_of(stream, 5000).total_steps < budget_of(replace(stream, augment=()), 5000).total_steps


def test_training_and_its_dry_run_take_the_same_steps(stream, tmp_path):
    path = write_experiment(tmp_path, augment=[MASKED], train=TOKENS)
    preprocess(read_config(path))
    assert preview(read_config(path), 1).steps == stream_of(path).total_steps


def test_a_budget_of_which_nothing_fits_is_refused(stream):
    narrow = replace(stream.encoder, max_length=4, too_long="reject")
    with pytest.raises(InputError, match=r"no example fits train\.max_length"):
        budget_of(replace(stream, encoder=narrow), 5000)


def test_epochs_are_three_where_no_budget_is_given_and_none_where_one_is(tmp_path):
    path = write_experiment(tmp_path, train=TOKENS)
    config = read_config(path)
    assert (config.train.epochs, config.train.max_tokens) == (None, 5000)
    write_config(config, tmp_path / "resolved.yaml")
    assert read_config(tmp_path / "resolved.yaml") == config
    assert read_config(path, ["train.max_tokens=null"]).train.epochs == 3
    for other in ("train.epochs=2", "train.max_steps=9"):
        with pytest.raises(ConfigError, match="set epochs and max_steps to null"):
            read_config(path, [other])
