"""Full attention is what explicit matrices say, at a model's own positions or at BICO's; other models are refused."""

import pytest
import torch
from fakes import byte_level, tiny_model
from torch.nn import functional

from spt.errors import ModelError
from spt.model.attention import fit_attention
from spt.model.full import check_full, check_mirrored, full_mask
from spt.model.mirror import mirror

OTHER = {"intermediate_size": 48, "num_key_value_heads": 2}
KINDS = {
    "llama": {},
    "mistral": OTHER,
    "qwen2": OTHER,
    "qwen3": {**OTHER, "head_dim": 8},
}
YARN = {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0}}


def build(kind, attention="sdpa", **values):
    model = tiny_model(kind, byte_level(), attention=attention, **{**KINDS.get(kind, {}), **values})
    fit_attention(model, packing=False)
    return model


def ids_and_visible():
    ids = torch.randint(1, 300, (3, 9), generator=torch.Generator().manual_seed(1))
    visible = torch.ones_like(ids, dtype=torch.bool)
    visible[0, [2, 5]] = False  # masked
    visible[1, 6:] = False  # padding
    return ids, visible


def full_logits(model, ids, visible, mirrored):
    turns = {"mirrored": mirror(model, ids.shape[1])} if mirrored else {}
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=full_mask(model, visible), use_cache=False, **turns).logits


def norm(x, weight):
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def logits_by_hand(model, row, visible, mirrored):
    """One row through a Llama of GQA, in float64: a pair of dimensions is a complex number, turned by its distance."""
    w = {name: weight.double() for name, weight in model.state_dict().items()}
    config, n = model.config, len(row)
    heads, groups = config.num_attention_heads, config.num_attention_heads // config.num_key_value_heads
    size = config.hidden_size // heads
    place = torch.arange(n, dtype=torch.float64)
    distance = place[:, None] - place
    distance = distance.abs() if mirrored else distance
    angle = 10000.0 ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    turn = torch.polar(torch.ones(n, n, size // 2, dtype=torch.float64), distance[:, :, None] * angle)
    x = w["model.embed_tokens.weight"][row]
    for layer in range(config.num_hidden_layers):
        at = f"model.layers.{layer}."
        h = norm(x, w[at + "input_layernorm.weight"])
        out = []
        for head in range(heads):
            own, shared = (slice(k * size, (k + 1) * size) for k in (head, head // groups))
            q = h @ w[at + "self_attn.q_proj.weight"][own].T
            k = h @ w[at + "self_attn.k_proj.weight"][shared].T
            q, k = (torch.complex(*part.chunk(2, dim=-1)) for part in (q, k))
            scores = (q[:, None] * k[None].conj() * turn).real.sum(-1) / size**0.5
            weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
            out.append(weights @ (h @ w[at + "self_attn.v_proj.weight"][shared].T))
        x = x + torch.cat(out, dim=-1) @ w[at + "self_attn.o_proj.weight"].T
        h = norm(x, w[at + "post_attention_layernorm.weight"])
        gate, up = (h @ w[at + f"mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (functional.silu(gate) * up) @ w[at + "mlp.down_proj.weight"].T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


@pytest.mark.parametrize(("attention", "mirrored"), [("eager", False), ("sdpa", False), ("sdpa", True)])
def test_full_attention_has_the_logits_of_explicit_matrices(attention, mirrored):
    model = build("llama", attention)
    ids, visible = ids_and_visible()
    found = full_logits(model, ids, visible, mirrored)
    for row in range(3):
        wanted = logits_by_hand(model, ids[row], visible[row], mirrored)
        assert float((found[row] - wanted).abs().max() / wanted.abs().max()) < 1e-5


def test_only_mirrored_positions_differ_from_the_models_own():
    model = build("llama")
    ids, visible = ids_and_visible()
    plain, mirrored = (full_logits(model, ids, visible, way) for way in (False, True))
    assert float((plain - mirrored).abs().max() / plain.abs().max()) > 1e-2


@pytest.mark.parametrize(("kind", "values"), [*((kind, {}) for kind in KINDS), ("llama", YARN)])
def test_a_row_and_its_reverse_are_alike_at_mirrored_positions(kind, values):
    model = build(kind, **values)
    check_mirrored(model)
    ids, visible = ids_and_visible()
    there = full_logits(model, ids, visible, mirrored=True)
    back = full_logits(model, ids.flip(1), visible.flip(1), mirrored=True).flip(1)
    assert float((there - back).abs().max() / there.abs().max()) < 1e-5
    one_sided = full_logits(model, ids.flip(1), visible.flip(1), mirrored=False).flip(1)
    assert float((there - one_sided).abs().max() / there.abs().max()) > 1e-2


def test_bfloat16_has_the_mirrored_logits_of_float32_to_its_own_precision():
    model = build("llama", scale=0.1)
    ids, visible = ids_and_visible()
    wanted = full_logits(model, ids, visible, mirrored=True)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = full_logits(model, ids, visible, mirrored=True).float()
    assert float((narrow - wanted).norm() / wanted.norm()) < 2e-2


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["gpt2", "gpt_neox", "qwen3"])
def test_other_causal_models_can_attend_to_both_sides_and_stay_causal(kind, attention):
    model = build(kind, attention, **({"intermediate_size": 48} if kind == "gpt_neox" else {}))
    ids, _ = ids_and_visible()
    with torch.no_grad():
        before = model(ids).logits
        check_full(model)
        assert torch.equal(model(ids).logits, before)


MAMBA = {"state_size": 4, "conv_kernel": 2, "expand": 2}


@pytest.mark.parametrize(
    ("check", "kind", "attention", "values", "reason"),
    [
        (check_full, "mamba", "eager", MAMBA, "the mamba model cannot attend to both sides"),
        (check_mirrored, "gpt2", "sdpa", {}, r"made for llama, mistral, qwen2, qwen3 \(.*, not for gpt2"),
        (check_mirrored, "llama", "eager", {}, "bico needs its own attention, .* not eager"),
    ],
)
def test_a_model_that_cannot_be_trained_so_is_refused_by_name(check, kind, attention, values, reason):
    with pytest.raises(ModelError, match=reason):
        check(build(kind, attention, **values))


def test_flash_attention_is_refused_where_masked_tokens_need_a_mask():
    model = build("llama")
    model.config._attn_implementation = "flash_attention_2"
    with pytest.raises(ModelError, match="which flash_attention_2 has not"):
        check_full(model)
