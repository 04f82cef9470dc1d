"""Packed equals unpacked: an example is learned in a row of many as it would be alone."""

import logging

import pytest
import torch
from fakes import byte_level, tiny_model

from spt.batch import collate
from spt.encode import IGNORED
from spt.errors import ModelError
from spt.loss import CausalLoss
from spt.model.adapter import add_lora
from spt.model.attention import NAME, attend, fit_attention
from spt.model.head import apply_head, backbone_of, head_of, recompute_activations
from spt.records import Example

GROUPED = {"num_key_value_heads": 2, "intermediate_size": 48}
KINDS = {
    "llama": {},
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 8},
    "mistral": {**GROUPED, "sliding_window": 4},
    "gpt2": {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "scale_attn_by_inverse_layer_idx": True},
    "gpt_neox": {"intermediate_size": 48},
}
LENGTHS = (9, 3, 7, 12, 2, 1)


def examples(lengths=LENGTHS):
    generator = torch.Generator().manual_seed(3)
    rows = [tuple(torch.randint(1, 300, (length,), generator=generator).tolist()) for length in lengths]
    # Some of the labels are not learned; the first are, though nothing can predict them.
    return [
        Example(str(n), "original", row, tuple(IGNORED if i % 4 == 2 else t for i, t in enumerate(row)))
        for n, row in enumerate(rows)
    ]


def build(kind, *, attention="sdpa", lora=False, checkpointing=False, packing=False, scale=0.3):
    model = tiny_model(kind, byte_level(), attention=attention, scale=scale, **KINDS[kind])
    if lora:
        model = add_lora(model, {"r": 4, "init_lora_weights": False}, None, seed=1)
    if checkpointing:
        recompute_activations(model)
    if attention == "sdpa":
        fit_attention(model, packing=packing)
    return model.train()


def learn(model, batches):
    objective = CausalLoss(model)
    model.zero_grad()
    losses = []
    for batch in batches:
        loss = objective(**batch.inputs("cpu"))
        loss.backward()
        losses.append(loss.item())
    return sum(losses), torch.cat([w.grad.flatten() for w in model.parameters() if w.grad is not None])


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_has_the_logits_in_a_packed_row_that_it_has_alone(kind):
    packed, plain = build(kind, packing=True), build(kind, attention="eager")
    inputs = collate(examples(), 0, packing=True).inputs("cpu")
    del inputs["labels"], inputs["predictors"]
    assert inputs["input_ids"].shape == (1, sum(LENGTHS))
    with torch.no_grad():
        found = apply_head(head_of(packed), backbone_of(packed)(**inputs, use_cache=False).last_hidden_state)[0]
        for example, part in zip(examples(), found.split(LENGTHS), strict=True):
            alone = plain(torch.tensor([example.input_ids]), use_cache=False).logits[0]
            assert torch.allclose(part, alone, atol=1e-5 * float(alone.abs().max()), rtol=0)


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_do_not_depend_on_the_layout(kind, lora):
    one_by_one = [collate([example], 0) for example in examples()]
    wanted, gradient = learn(build(kind, attention="eager", lora=lora), one_by_one)
    for packing in (False, True):
        model = build(kind, lora=lora, checkpointing=True, packing=packing)
        loss, found = learn(model, [collate(examples(), 0, packing=packing)])
        assert loss == pytest.approx(wanted, rel=1e-5)
        assert float((found - gradient).norm() / gradient.norm()) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_right_padding_needs_no_mask_whatever_pads(kind):
    model = build(kind)
    one, other = (learn(model, [collate(examples(), pad)]) for pad in (0, 77))
    assert one[0] == pytest.approx(other[0], rel=1e-6)
    assert float((one[1] - other[1]).norm() / one[1].norm()) < 1e-6


def test_a_packed_batch_of_one_example_is_that_example():
    model = build("mistral", packing=True)
    packed, padded = (learn(model, [collate(examples((12,)), 0, packing=packing)])[0] for packing in (True, False))
    assert packed == pytest.approx(padded, rel=1e-6)


def test_a_model_that_can_be_packed_still_answers_from_left_padded_prompts():
    ids = torch.tensor([[0, 0, 5, 6, 7], [9, 8, 7, 6, 5]])
    mask = (ids != 0).long()
    answers = []
    for attention in ("eager", "sdpa"):
        model = build("mistral", attention=attention, packing=True).eval()
        answers.append(model.generate(ids, attention_mask=mask, max_new_tokens=8, do_sample=False, pad_token_id=0))
    assert model.config._attn_implementation == NAME
    assert torch.equal(*answers)


def test_an_architecture_that_loses_the_lengths_is_refused():
    model = tiny_model("stablelm", byte_level(), attention="sdpa", **GROUPED)
    with pytest.raises(ModelError, match=r"the stablelm model (does not keep packed examples apart|cannot be packed)"):
        fit_attention(model, packing=True)


def test_an_architecture_whose_attention_is_its_own_is_refused_with_what_to_do():
    with pytest.raises(ModelError, match=r"gpt2 model attends by 'eager'.*attn_implementation: sdpa.*packing: false"):
        fit_attention(tiny_model("gpt2", byte_level()), packing=True)


def test_soft_caps_are_refused_rather_than_left_out():
    model = tiny_model("gemma2", byte_level(), **GROUPED, head_dim=8)
    fit_attention(model, packing=False)
    model.set_attn_implementation(NAME)
    with pytest.raises(ModelError, match=r"the gemma2 model caps its attention.*flash_attention_2"):
        fit_attention(model, packing=True)


def test_a_model_that_was_not_asked_to_pack_keeps_its_attention_where_ours_does_not_fit(caplog):
    model = tiny_model("bloom", byte_level(), attention="eager")
    with caplog.at_level(logging.WARNING):
        fit_attention(model, packing=False)
    assert model.config._attn_implementation == "eager"
    assert not caplog.records


@pytest.mark.parametrize("length", [40, 300])
def test_bfloat16_attention_on_a_cpu_is_that_of_float32_to_its_own_precision(length):
    torch.manual_seed(0)
    module = torch.nn.Module()
    module.num_key_value_groups = 2
    query, key, value = (torch.randn(2, heads, length, 8) for heads in (4, 2, 2))
    wanted, _ = attend(module, query, key, value, None, sliding_window=30)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = attend(module, *(part.bfloat16() for part in (query, key, value)), None, sliding_window=30)
    assert found.dtype == torch.bfloat16
    assert float((found - wanted).abs().max()) < 3e-2
