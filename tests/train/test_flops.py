"""FLOP a token against torch's own counter, and the table of chips against what drivers say."""

import pytest
import torch
from fakes import byte_level, tiny_model
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from spt.model.adapter import add_lora
from spt.records import Tag
from spt.train.flops import flops_per_token, peak_flops

ROWS, LENGTH = 4, 32


def counted(model):
    """FLOP a token of one forward and backward pass, as torch counts its matrix products."""
    ids = torch.randint(0, 200, (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counter:
        model.train()(input_ids=ids, use_cache=False).logits.sum().backward()
    return counter.get_total_flops() / ids.numel()


# Attention written out computes the whole square, of which a causal model needs half: so twice the length.
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_full_model_takes_the_flops_that_torch_counts(kind, tied):
    model = tiny_model(kind, byte_level(), hidden_size=64, tie_word_embeddings=tied)
    assert flops_per_token(model, 2 * LENGTH) == pytest.approx(counted(model), rel=0.01)


def adapted(tag):
    base = tiny_model("llama", byte_level(), hidden_size=64, num_hidden_layers=8, tie_word_embeddings=True)
    return add_lora(base, {"r": 4, "lora_alpha": 8}, tag, 0)


def test_a_lora_base_takes_four_a_weight_and_its_adapters_six():
    # Nothing learns below the first layer's inputs, so torch counts a little less.
    model = adapted(None)
    assert flops_per_token(model, 2 * LENGTH) == pytest.approx(counted(model), rel=0.03)


def test_a_tag_trained_beside_a_lora_adds_its_row_alone():
    assert flops_per_token(adapted(Tag(token_id=3))) == flops_per_token(adapted(None)) + 6 * 64


def test_a_model_that_deepspeed_has_taken_apart_takes_the_same():
    model = tiny_model("llama", byte_level(), hidden_size=64, tie_word_embeddings=True)
    whole = flops_per_token(model)
    for parameter in model.parameters():
        parameter.ds_shape, parameter.ds_numel = parameter.shape, parameter.numel()
        parameter.data = torch.empty(0)
    assert flops_per_token(model) == whole > 0


def test_experts_that_a_token_does_not_visit_are_not_counted():
    def flops(experts):
        shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "moe_intermediate_size": 32}
        config = AutoConfig.for_model("qwen3_moe", **shape, num_experts=experts, num_experts_per_tok=2, vocab_size=300)
        with torch.device("meta"):
            return flops_per_token(AutoModelForCausalLM.from_config(config))

    routers = 2 * 64 * (32 - 8) * 6
    assert flops(32) - flops(8) == routers


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", torch.bfloat16, 989e12),
        ("NVIDIA H100 PCIe", torch.bfloat16, 756e12),
        ("NVIDIA A100-SXM4-40GB", torch.bfloat16, 312e12),
        ("NVIDIA A10G", torch.bfloat16, 70e12),
        ("NVIDIA L40S", "float32", 91.6e12),
        ("Tesla T4", torch.bfloat16, None),
        ("Tesla T4", torch.float16, 65e12),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", torch.bfloat16, None),
        ("Some Chip 9000", torch.bfloat16, None),
        (torch.device("cpu"), torch.bfloat16, None),
    ],
)
def test_a_chips_rate_is_found_by_its_drivers_name(name, dtype, expected):
    assert peak_flops(name, dtype) == expected
