"""Every record once an epoch, every position on one rank, padding masked by length."""

from itertools import pairwise

import pytest
import torch
from fakes import metaspace
from hypothesis import given
from hypothesis import strategies as st

from spt.batch import collate, plan_epoch, split_step, steps_per_epoch
from spt.encode import IGNORED, Encoder
from spt.records import Example, Ordering, Piece

COUNT = st.integers(1, 70)
SIZE = st.integers(1, 20)


@given(records=COUNT, batch_size=SIZE, seed=st.integers(0, 2**63 - 1), epoch=st.integers(0, 3))
def test_an_epoch_holds_every_record_once_and_keeps_its_last_batch(records, batch_size, seed, epoch):
    plan = plan_epoch(records, batch_size, seed=seed, epoch=epoch)
    assert sorted(index for step in plan for index in step) == list(range(records))
    assert len(plan) == steps_per_epoch(records, batch_size)
    assert [len(step) for step in plan[:-1]] == [batch_size] * (len(plan) - 1)


def test_seeds_and_epochs_plan_apart_even_above_32_bits():
    plans = [plan_epoch(50, 8, seed=seed, epoch=epoch) for seed in (1, 2, 1 + 2**32) for epoch in (0, 1)]
    assert all(left != right for n, left in enumerate(plans) for right in plans[:n])
    assert plan_epoch(50, 8, seed=1, epoch=0) == plans[0]


@given(lengths=st.lists(st.integers(0, 30), min_size=1, max_size=70), micro=SIZE, world=st.integers(1, 5))
def test_ranks_share_every_position_once_in_equally_many_micro_batches(lengths, micro, world):
    ranks = [split_step(lengths, micro, rank=rank, world_size=world) for rank in range(world)]
    assert sorted(position for rank in ranks for batch in rank for position in batch) == list(range(len(lengths)))
    assert len({len(rank) for rank in ranks}) == 1
    sizes = [len(batch) for rank in ranks for batch in rank]
    assert max(sizes) <= micro
    assert max(sizes) - min(sizes) <= 1
    rounds = zip(*ranks, strict=True)
    in_order = [lengths[position] for round_ in rounds for batch in round_ for position in batch]
    assert in_order == sorted(lengths, reverse=True)


@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=5), pad=st.integers(0, 3)
)
def test_padding_is_masked_by_length_whatever_its_id(rows, pad):
    examples = [Example(str(n), "original", tuple(row), (IGNORED, *row[1:])) for n, row in enumerate(rows)]
    batch = collate(examples, pad)
    for n, row in enumerate(rows):
        rest = batch.input_ids.shape[1] - len(row)
        assert batch.input_ids[n].tolist() == row + [pad] * rest
        assert batch.labels[n].tolist() == [IGNORED, *row[1:]] + [IGNORED] * rest
    assert batch.target_tokens == sum(len(row) - 1 for row in rows)
    assert batch.lengths == tuple(map(len, rows))
    assert batch.tokens == sum(map(len, rows))
    assert batch.size == len(rows) * max(map(len, rows))


@given(rows=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=5))
def test_a_packed_row_holds_every_example_at_its_own_positions_and_nothing_else(rows):
    examples = [Example(str(n), "original", tuple(row), tuple(row)) for n, row in enumerate(rows)]
    batch = collate(examples, 0, packing=True)
    inputs = batch.inputs("cpu")
    bounds = inputs["cu_seq_lens_q"].tolist()
    assert batch.size == batch.tokens == inputs["input_ids"].numel()
    assert [inputs["input_ids"][0, start:end].tolist() for start, end in pairwise(bounds)] == rows
    assert [inputs["position_ids"][0, start:end].tolist() for start, end in pairwise(bounds)] == [
        list(range(len(row))) for row in rows
    ]
    # Nothing in an example predicts its first token: before it stands another example.
    assert [inputs["labels"][0, start:end].tolist() for start, end in pairwise(bounds)] == [
        [IGNORED, *row[1:]] for row in rows
    ]
    assert inputs["max_length_q"] == max(map(len, rows))


@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=5),
    masked=st.integers(0, 3),
    packing=st.booleans(),
)
def test_predictors_stand_right_before_every_learned_token_of_their_own_example(rows, masked, packing):
    learned = [tuple(IGNORED if token == masked else 10 * n + token for token in row) for n, row in enumerate(rows)]
    examples = [
        Example(str(n), "original", tuple(10 * n + token for token in row), labels)
        for n, (row, labels) in enumerate(zip(rows, learned, strict=True))
    ]
    batch = collate(examples, 0, packing=packing)
    inputs = batch.inputs("cpu")
    ids, labels, predictors = inputs["input_ids"].flatten(), inputs["labels"].flatten(), inputs["predictors"]
    targets = labels[predictors + 1].tolist()
    assert targets == [label for row in learned for label in row[1:] if label != IGNORED]
    assert [token // 10 for token in ids[predictors].tolist()] == [target // 10 for target in targets]
    assert batch.target_tokens == len(targets)


def test_the_end_stays_a_label_where_it_pads():
    texts = ["Ann Lee directed The Sea.", "Ann"]
    orderings = [Ordering("r", "original", (0,), text, (Piece(0, len(text), 0),)) for text in texts]
    tokenizer = metaspace()
    batch = collate(Encoder(tokenizer).encode(orderings), tokenizer.pad_token_id)
    assert (batch.labels == tokenizer.eos_token_id).sum(dim=1).tolist() == [1, 1]
    assert batch.input_ids[1].tolist().count(tokenizer.eos_token_id) > 1


@pytest.mark.parametrize("packing", [False, True])
def test_a_batch_without_examples_is_a_row_of_weight_zero(packing):
    batch = collate([], 5, packing=packing)
    inputs = batch.inputs("cpu")
    assert (batch.target_tokens, batch.tokens, batch.size) == (0, 0, 2)
    assert inputs["input_ids"].tolist() == [[5, 5]]
    assert inputs["predictors"].numel() == 0
    assert inputs.get("cu_seq_lens_q", torch.tensor([0, 2])).tolist() == [0, 2]
