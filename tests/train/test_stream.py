"""The stream of examples is a function of seed and step: whatever the ranks, the micro-batches and the workers."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from experiment import write_experiment
from streams import examples_of, stream_of

from spt.config import read_config
from spt.preprocess import preprocess


@pytest.fixture(scope="module", params=["facts", "mixed"])
def stream(request, tmp_path_factory):
    """Four epochs of 40 facts, alone or with 10 pieces of 17; some of both are too long and rejected."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "general.txt").write_text("".join(f"Line {n} of {'plain ' * (n % 7)}text.\n" for n in range(17)))
    path = write_experiment(folder, train={"epochs": 4, "too_long": "reject", "max_length": 26})
    mixed = [f"data.mix.path={folder / 'general.txt'}", "data.mix.share=0.2"]
    preprocess(read_config(path))
    return stream_of(path, *(mixed if request.param == "mixed" else []), "train.dataloader_num_workers=0")


def with_settings(stream, **settings):
    return replace(stream, train=stream.train.model_copy(update=settings))


def contents(steps):
    return [(step.ids, examples_of(step.batches), step.counts) for step in steps]


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_ranks_share_the_stream_of_one_process_without_loss_or_repeat(stream, world_size):
    parts = [replace(stream, rank=rank, world_size=world_size).steps(0) for rank in range(world_size)]
    for step, *shared in zip(stream.steps(0), *parts, strict=True):
        assert all(part.ids == step.ids for part in shared)
        assert len({len(part.batches) for part in shared}) == 1, "ranks must take the same number of micro-batches"
        assert examples_of(batch for part in shared for batch in part.batches) == examples_of(step.batches)
        assert sum((part.counts for part in shared), Counter()) == step.counts


def test_an_epoch_holds_every_record_once_and_draws_orders_anew(stream):
    steps, per_epoch = list(stream.steps(0)), stream.steps_per_epoch
    assert len(steps) == stream.total_steps == 4 * per_epoch
    epochs = [steps[e * per_epoch : (e + 1) * per_epoch] for e in range(4)]
    for epoch in epochs:
        ids = [name for step in epoch for name in step.ids if not name.startswith("mix:")]
        assert len(ids) == len(set(ids)) == 40
        assert [len(step.ids) for step in epoch[:-1]] == [12] * (per_epoch - 1)
    drawn = [examples_of(batch for step in epoch for batch in step.batches) for epoch in epochs]
    assert all(left != right for n, left in enumerate(drawn) for right in drawn[:n])
    assert sum(step.counts["too_long_reject"] for step in steps) > 0


@pytest.mark.parametrize("micro_batch_size", [1, 4, 12])
def test_a_resume_at_any_step_draws_the_rest_of_the_stream_whatever_the_accumulation(stream, micro_batch_size):
    whole, resumed = contents(stream.steps(0)), with_settings(stream, micro_batch_size=micro_batch_size)
    for done in (0, 1, stream.steps_per_epoch, stream.total_steps - 1, stream.total_steps):
        assert contents(resumed.steps(done)) == whole[done:]


@pytest.mark.parametrize("packing", [False, True])
def test_workers_prepare_the_same_bytes_in_the_same_order(stream, packing):
    here, ahead = (with_settings(stream, packing=packing, dataloader_num_workers=n) for n in (0, 2))
    before = torch.get_rng_state()
    for left, right in zip(here.steps(3), ahead.steps(3), strict=True):
        assert (left.ids, left.counts) == (right.ids, right.counts)
        for one, other in zip(left.batches, right.batches, strict=True):
            assert vars(one).keys() == vars(other).keys()
            for name, value in vars(one).items():
                same = torch.equal if isinstance(value, torch.Tensor) else lambda a, b: a == b
                assert same(value, getattr(other, name)), name
    assert torch.equal(torch.get_rng_state(), before), "dropout must not depend on workers"
