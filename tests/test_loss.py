"""A loss is a sum of nats: the same however its examples are batched, laid out, and their logits made."""

import pytest
import torch
from fakes import CORPUS, byte_level, tiny_model
from torch.utils._python_dispatch import TorchDispatchMode

from spt.batch import collate, split_step
from spt.encode import IGNORED, Encoder
from spt.loss import CausalLoss
from spt.model.adapter import add_lora
from spt.model.attention import fit_attention
from spt.records import Ordering, Piece, Tag


def examples():
    texts = [text[: 4 + 3 * n] for n, text in enumerate(CORPUS[:4] + CORPUS[1:5])]
    orderings = [Ordering(str(n), "original", (0,), text, (Piece(0, len(text), 0),)) for n, text in enumerate(texts)]
    return Encoder(byte_level()).encode(orderings)


def gradient(model):
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])


def learn(model, batches, **options):
    """The summed loss, and the gradient as one vector."""
    model.zero_grad()
    objective, total = CausalLoss(model, **options), 0.0
    for batch in batches:
        loss = objective(**batch.inputs("cpu"))
        loss.backward()
        total += loss.item()
    return total, gradient(model)


def far(one, other):
    return float((one - other).norm() / other.norm())


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


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_accumulation_and_ranks_change_neither_loss_nor_gradient(kind, packing):
    model, rows = tiny_model(kind, byte_level(), scale=0.1, attention="sdpa"), examples()
    lengths = [len(row.input_ids) for row in rows]
    fit_attention(model, packing=packing)

    def split(micro, world, packing=packing):
        ranks = [split_step(lengths, micro, rank=rank, world_size=world) for rank in range(world)]
        return [collate([rows[place] for place in part], 0, packing=packing) for rank in ranks for part in rank]

    loss, whole = learn(model, split(8, 1, packing=False))
    for micro, world in ((8, 1), (1, 1), (3, 1), (4, 2), (1, 3), (16, 16)):
        other_loss, other = learn(model, split(micro, world))
        assert other_loss == pytest.approx(loss, rel=1e-6)
        assert far(other, whole) < 1e-6


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_an_empty_batch_has_no_loss_and_a_gradient_of_zero_for_every_weight(kind, packing):
    model = tiny_model(kind, byte_level(), attention="sdpa")
    fit_attention(model, packing=packing)
    loss, zeros = learn(model, [collate([], 0, packing=packing)])
    assert loss == 0.0
    assert torch.equal(zeros, torch.zeros(sum(weight.numel() for weight in model.parameters())))


def adapted(**lora):
    def build(**values):
        tag = lora.pop("tag", None)
        model = add_lora(tiny_model("llama", byte_level(), **values), {"r": 4, **lora}, tag, seed=0)
        for name, weight in model.named_parameters():  # from zeros, half of the gradients would be zeros
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.1)
        return model

    return build


HEADS = {
    "trained whole": lambda: tiny_model("llama", byte_level()),
    "tied, trained whole": lambda: tiny_model("llama", byte_level(), tie_word_embeddings=True),
    "with a bias": lambda: tiny_model("phi", byte_level(), intermediate_size=48, partial_rotary_factor=1.0),
    "frozen": adapted(),
    "frozen, tied": lambda: adapted()(tie_word_embeddings=True),
    "adapted": adapted(target_modules=["q_proj", "lm_head"]),
    "with the row of a tag": lambda: adapted(tag=Tag(token_id=7))(tie_word_embeddings=True),
    "frozen beside the row of a tag": adapted(tag=Tag(token_id=7)),
}


@pytest.mark.parametrize("rows", [1, 3, 10_000])
@pytest.mark.parametrize("name", HEADS)
def test_a_loss_in_chunks_has_the_gradients_of_whole_logits(name, rows, monkeypatch):
    model = HEADS[name]()
    monkeypatch.setattr("spt.model.head._CHUNK", {"cpu": rows * len(byte_level())})
    objective, batch = CausalLoss(model), collate(examples(), 0)
    assert objective.by_head
    losses, gradients = [], []
    for by_head in (True, False):
        model.zero_grad()
        objective.by_head = by_head
        (objective(**batch.inputs("cpu")) / 7).backward()
        losses.append(objective(**batch.inputs("cpu")).item())
        gradients.append(gradient(model))
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert far(*gradients) < 1e-6
    assert gradients[0].count_nonzero() > 0


class Largest(TorchDispatchMode):
    """Remembers how many rows of a vocabulary's width any result had."""

    def __init__(self, width):
        super().__init__()
        self.width, self.rows = width, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        for result in results if isinstance(results, tuple | list) else (results,):
            if isinstance(result, torch.Tensor) and result.shape[-1:] == (self.width,) and len(result) != SIZE:
                self.rows = max(self.rows, result.shape[:-1].numel())
        return results


SIZE = 32
"""The hidden size: a head's weight, transposed, has as many rows."""


@pytest.mark.parametrize("name", ["trained whole", "frozen", "adapted", "with the row of a tag"])
def test_no_more_logits_than_a_chunk_are_ever_made(name, monkeypatch):
    model, batch = HEADS[name](), collate(examples(), 0)
    monkeypatch.setattr("spt.model.head._CHUNK", {"cpu": 5 * len(byte_level())})
    objective = CausalLoss(model)
    with Largest(len(byte_level())) as largest:
        objective(**batch.inputs("cpu")).backward()
    assert 0 < largest.rows <= 5 < batch.target_tokens


def test_without_gradients_a_loss_is_the_same_number():
    objective, batch = CausalLoss(adapted()()), collate(examples(), 0)
    loss = objective(**batch.inputs("cpu"))
    with torch.no_grad():
        assert objective(**batch.inputs("cpu")).item() == pytest.approx(loss.item(), rel=1e-6)


@pytest.mark.parametrize("name", ["trained whole", "frozen", "with the row of a tag"])
def test_bfloat16_gives_the_gradients_of_float32_to_its_own_precision(name, monkeypatch):
    model, batch = HEADS[name](), collate(examples(), 0)
    monkeypatch.setattr("spt.model.head._CHUNK", {"cpu": 5 * len(byte_level())})
    loss, wanted = learn(model, [batch])
    with torch.autocast("cpu", torch.bfloat16):
        objective = CausalLoss(model)
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        narrow = objective(**batch.inputs("cpu"))
    narrow.backward()
    assert narrow.dtype == torch.float32
    assert narrow.item() == pytest.approx(loss, rel=2e-2)
    assert far(gradient(model), wanted) < 5e-2


GRANITE = {"intermediate_size": 48, "num_key_value_heads": 2, "logits_scaling": 3.0}
GEMMA = {"intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8}
BERT = {"intermediate_size": 48, "is_decoder": True}


@pytest.mark.parametrize(("kind", "values"), [("granite", GRANITE), ("gemma2", GEMMA), ("bert", BERT)])
def test_a_model_that_changes_its_logits_after_the_head_is_found_out_and_learned_as_it_is(kind, values, capsys):
    model = tiny_model(kind, byte_level(), **values)
    objective = CausalLoss(model)
    assert not objective.by_head
    assert f"the {kind} model changes its logits" in capsys.readouterr().err
    row = torch.tensor([examples()[0].input_ids])
    with torch.no_grad():
        own = model(row).logits[0, :-1].log_softmax(-1).gather(1, row[0, 1:, None]).sum()
        loss = objective(**collate(examples()[:1], 0).inputs("cpu"))
    assert loss.item() == pytest.approx(-own.item(), rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("packing", [False, True])
def test_a_compiled_model_gives_the_loss_and_gradient_of_the_plain_one(packing):
    values = {"intermediate_size": 48, "num_key_value_heads": 2, "sliding_window": 5, "num_hidden_layers": 1}
    model = tiny_model("mistral", byte_level(), attention="sdpa", **values)
    fit_attention(model, packing=packing)
    batches = [collate(examples()[:5], 0, packing=packing), collate(examples()[5:], 0, packing=packing)]
    loss, plain = learn(model, batches)
    compiled_loss, compiled = learn(model, batches, compiler="eager")
    assert compiled_loss == pytest.approx(loss, rel=1e-6)
    assert far(compiled, plain) < 1e-6
