"""A loss is a sum of nats: the same however its examples are batched."""

import pytest
import torch
from fakes import CORPUS, byte_level, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from spt.batch import collate, split_step
from spt.encode import IGNORED, Encoder
from spt.loss import CausalLoss, target_log_probabilities
from spt.records import Ordering, Piece


def examples():
    texts = [text[: 4 + 3 * n] for n, text in enumerate(CORPUS[:4] + CORPUS[1:5])]
    orderings = [Ordering(str(n), "original", (0,), text, (Piece(0, len(text), 0),)) for n, text in enumerate(texts)]
    return Encoder(byte_level()).encode(orderings)


def learn(model, batches):
    """The summed loss, and the gradient as one vector."""
    model.zero_grad()
    objective, total = CausalLoss(model), 0.0
    for batch in batches:
        loss = objective(batch.input_ids, batch.attention_mask, batch.labels)
        loss.backward()
        total += loss.item()
    return total, torch.cat(
        [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    )


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_loss_is_the_sum_of_nats_of_a_plain_float64_computation(kind):
    model = tiny_model(kind, byte_level())
    total, _ = learn(model, [collate(examples(), 0)])
    nats = 0.0
    for example in examples():
        with torch.no_grad():
            logits = model(torch.tensor([example.input_ids])).logits[0].double()
        for place in range(1, len(example.labels)):
            if example.labels[place] != IGNORED:
                nats -= float(logits[place - 1].log_softmax(-1)[example.labels[place]])
    assert total == pytest.approx(nats, rel=1e-6)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_accumulation_and_ranks_change_neither_loss_nor_gradient(kind):
    model, rows = tiny_model(kind, byte_level(), scale=0.1), examples()
    lengths = [len(row.input_ids) for row in rows]

    def split(micro, world):
        ranks = [split_step(lengths, micro, rank=rank, world_size=world) for rank in range(world)]
        return [collate([rows[position] for position in part], 0) for rank in ranks for part in rank]

    loss, gradient = learn(model, split(8, 1))
    for micro, world in ((1, 1), (3, 1), (4, 2), (1, 3), (16, 16)):
        other_loss, other = learn(model, split(micro, world))
        assert other_loss == pytest.approx(loss, rel=1e-6)
        assert float((other - gradient).norm() / gradient.norm()) < 1e-6


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_an_empty_batch_has_no_loss_and_a_gradient_of_zero(kind):
    loss, gradient = learn(tiny_model(kind, byte_level()), [collate([], 0)])
    assert loss == 0.0
    assert torch.equal(gradient, torch.zeros_like(gradient))


@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.1, 50.0]))
def test_rows_log_probabilities_sum_their_own_labels(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 5, 7, generator=generator) * scale
    labels = torch.randint(0, 7, (3, 5), generator=generator)
    labels[torch.rand(3, 5, generator=generator) < 0.4] = IGNORED
    found = target_log_probabilities(logits, labels)
    for row in range(3):
        wanted = sum(
            logits[row, place - 1].double().log_softmax(-1)[labels[row, place]].item()
            for place in range(1, 5)
            if labels[row, place] != IGNORED
        )
        assert found[row].item() == pytest.approx(wanted, rel=1e-5, abs=1e-6)
