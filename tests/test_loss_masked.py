"""Masked tokens are learned from everything else: what is masked, what is seen, and what the loss of it is."""

from collections import Counter
from copy import deepcopy

import pytest
import torch
from fakes import TOKENIZERS, byte_level, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from test_loss import adapted, far, gradient

from spt.batch import split_step
from spt.encode import IGNORED
from spt.loss import OBJECTIVES, BicoLoss, Draw, UniformMaskedLoss
from spt.model.attention import fit_attention
from spt.model.full import full_mask
from spt.model.head import recompute_activations
from spt.model.mirror import mirror
from spt.model.tag import choose_mask, choose_tag
from spt.records import Example, Tag

MASK = 9
MASKED = {"mlm_u": UniformMaskedLoss, "bico": BicoLoss}
HEADS_UP = next(step for step in range(20) if Draw(0, 0, step).toss())


def examples():
    generator = torch.Generator().manual_seed(5)
    rows = [tuple(torch.randint(10, 300, (n,), generator=generator).tolist()) for n in (9, 1, 14, 3, 20, 7, 2, 17)]
    return [Example(str(n), "original", row, (IGNORED, *row[1:])) for n, row in enumerate(rows)]


def draw(seed=0, step=HEADS_UP):
    return Draw(seed, 0, step, MASK)


def build(adapters=False):
    model = adapted()(attention="sdpa") if adapters else tiny_model("llama", byte_level(), attention="sdpa")
    fit_attention(model, packing=False)
    return model.train()


def learn(objective, batches):
    objective.zero_grad()
    total = 0.0
    for batch in batches:
        loss = objective(**batch.inputs("cpu"))
        loss.backward()
        total += loss.item()
    return total, gradient(objective)


ROWS = st.lists(st.lists(st.integers(10, 30), min_size=1, max_size=9), min_size=1, max_size=4)


@pytest.mark.parametrize("name", MASKED)
@given(rows=ROWS, prompt=st.integers(0, 4), seed=st.integers(0, 99))
def test_only_learned_tokens_are_masked_and_nobody_sees_them_or_padding(name, rows, prompt, seed):
    given_rows = [
        Example(str(n), "original", tuple(row), (*[IGNORED] * min(prompt, len(row)), *row[prompt:]))
        for n, row in enumerate(rows)
    ]
    batch = MASKED[name].collate(given_rows, 0, Draw(seed, 0, HEADS_UP, MASK))
    if batch.visible is None:
        assert name == "bico"
        return
    for row, example in enumerate(given_rows):
        for place in range(batch.input_ids.shape[1]):
            masked = bool(batch.labels[row, place] != IGNORED)
            inside = place < len(example.input_ids)
            assert batch.visible[row, place] == (inside and not masked)
            if masked:
                assert place > 0
                assert batch.labels[row, place] == example.labels[place]
                assert batch.input_ids[row, place] == MASK
            elif inside:
                assert batch.input_ids[row, place] == example.input_ids[place]
    if name == "mlm_u":
        able = sum(any(label != IGNORED for label in example.labels[1:]) for example in given_rows)
        assert sum(bool((row != IGNORED).any()) for row in batch.labels) == able
    assert batch.target_tokens == int((batch.input_ids == MASK).sum())


def test_every_number_of_masked_tokens_is_equally_likely_for_mlm_u_and_bico_masks_15_percent():
    row = tuple(range(10, 21))
    many = [Example(str(n), "original", row, row) for n in range(2000)]
    counts = Counter((UniformMaskedLoss.collate(many, 0, draw()).labels != IGNORED).sum(dim=1).tolist())
    assert sorted(counts) == list(range(1, 11))
    assert all(abs(count / 2000 - 0.1) < 0.03 for count in counts.values())
    assert abs(BicoLoss.collate(many, 0, draw()).target_tokens / (2000 * 10) - 0.15) < 0.01


def test_masks_change_with_seed_and_epoch_and_never_with_the_company_or_the_step():
    one, *others = examples()
    alone = UniformMaskedLoss.collate([one], 0, Draw(0, 0, 1, MASK))
    beside = UniformMaskedLoss.collate([*others, one], 0, Draw(0, 0, 2, MASK))
    assert torch.equal(alone.labels[0], beside.labels[-1, : len(one.labels)])
    drawn = [UniformMaskedLoss.collate(examples(), 0, Draw(s, e, 0, MASK)).labels for s, e in ((0, 0), (1, 0), (0, 1))]
    assert not any(torch.equal(drawn[a], drawn[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_bico_is_causal_in_half_of_all_steps():
    batches = [BicoLoss.collate(examples(), 0, Draw(0, 0, step, MASK)) for step in range(400)]
    causal = [batch for batch in batches if batch.visible is None]
    assert 160 < len(causal) < 240
    plain = OBJECTIVES["causal"].collate(examples(), 0, draw())
    assert all(torch.equal(batch.labels, plain.labels) for batch in causal)


@pytest.mark.parametrize("name", MASKED)
def test_the_loss_is_the_nats_of_masked_tokens_at_the_position_before_each(name):
    model = build().eval()
    batch, nats = MASKED[name].collate(examples(), 0, draw()), 0.0
    for row, length in enumerate(batch.lengths):
        ids, visible = batch.input_ids[row : row + 1, :length], batch.visible[row : row + 1, :length]
        turns = {"mirrored": mirror(model, length)} if name == "bico" else {}
        with torch.no_grad():
            logits = model(ids, attention_mask=full_mask(model, visible), use_cache=False, **turns).logits[0].double()
        for place, label in enumerate(batch.labels[row].tolist()):
            nats -= 0.0 if label == IGNORED else float(logits[place - 1].log_softmax(-1)[label])
    assert batch.target_tokens > 3
    with torch.no_grad():
        assert MASKED[name](model)(**batch.inputs("cpu")).item() == pytest.approx(nats, rel=1e-6)


@pytest.mark.parametrize("adapters", [False, True])
@pytest.mark.parametrize("name", MASKED)
def test_micro_batches_ranks_and_recomputed_activations_change_neither_loss_nor_gradient(name, adapters):
    model, rows = build(adapters), examples()
    objective, lengths = MASKED[name](model), [len(row.input_ids) for row in rows]
    loss, whole = learn(objective, [objective.collate(rows, 0, draw())])
    assert whole.count_nonzero() > 0
    for micro, world, again in ((3, 1, False), (1, 3, False), (16, 16, True)):
        if again:
            recompute_activations(model)
        ranks = [split_step(lengths, micro, rank=rank, world_size=world) for rank in range(world)]
        batches = [objective.collate([rows[p] for p in part], 0, draw()) for rank in ranks for part in rank]
        other_loss, other = learn(objective, batches)
        assert other_loss == pytest.approx(loss, rel=1e-6)
        assert far(other, whole) < 2e-6


@pytest.mark.parametrize("name", MASKED)
def test_a_row_of_weight_zero_has_no_loss_and_a_gradient_of_zeros(name):
    objective = MASKED[name](build())
    loss, zeros = learn(objective, [objective.collate([], 0, draw())])
    assert loss == 0.0
    assert zeros.numel() == sum(weight.numel() for weight in objective.parameters())
    assert zeros.count_nonzero() == 0


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_mask_is_the_tokenizers_own_or_one_that_is_neither_the_tag_nor_ever_learned(name):
    tokenizer = deepcopy(TOKENIZERS[name]())  # they are shared between tests
    tag = choose_tag(tokenizer, "auto")
    chosen = choose_mask(tokenizer, tag)
    assert chosen != tag.token_id
    assert chosen in {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    tokenizer.mask_token = tokenizer.convert_ids_to_tokens(65)
    assert choose_mask(tokenizer, tag) == choose_mask(tokenizer, None) == 65
    assert choose_mask(tokenizer, Tag(token_id=65)) != 65


@pytest.mark.full
@pytest.mark.parametrize("name", MASKED)
def test_a_compiled_model_gives_the_loss_and_gradient_of_the_plain_one(name):
    model = build()
    plain, compiled = MASKED[name](model), MASKED[name](model, "eager")
    batches = [plain.collate(rows, 0, draw()) for rows in (examples()[:5], examples()[5:])]
    loss, wanted = learn(plain, batches)
    other_loss, other = learn(compiled, batches)
    assert other_loss == pytest.approx(loss, rel=1e-6)
    assert far(other, wanted) < 1e-6
