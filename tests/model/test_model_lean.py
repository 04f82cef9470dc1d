"""Norms and gated layers that keep less for the backward pass compute what transformers' own compute."""

import copy

import pytest
import torch
from fakes import byte_level, tiny_model

from spt.loss.causal import CausalLoss, head_loss
from spt.model.adapter import adapted_layers, add_lora, inputs_as_they_come
from spt.model.head import recompute_activations
from spt.model.lean import keep_less

GROUPED = {"num_key_value_heads": 2, "intermediate_size": 48}
IDS = torch.randint(3, 250, (3, 9), generator=torch.Generator().manual_seed(1))
LORA = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}
DROPPING = {**LORA, "lora_dropout": 0.3, "init_lora_weights": False}


def gradients(model, *, autocast=False):
    """Logits and, by name, the gradients of their weighted sum."""
    weights = torch.linspace(-1, 1, IDS.numel() * 7).view(*IDS.shape, 7)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        logits = model.train()(input_ids=IDS, use_cache=False).logits
    (logits[..., :7].float() * weights).sum().backward()
    return logits.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def replaced(model):
    return {type(module).__name__ for module in model.modules() if "forward" in vars(module)}


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("llama", GROUPED, {"LlamaRMSNorm", "LlamaMLP"}),
        ("mistral", GROUPED, {"MistralRMSNorm", "MistralMLP"}),
        ("qwen2", GROUPED, {"Qwen2RMSNorm", "Qwen2MLP"}),
        ("qwen3", {**GROUPED, "head_dim": 8}, {"Qwen3RMSNorm", "Qwen3MLP"}),
        ("gemma", {**GROUPED, "head_dim": 8}, {"GemmaMLP"}),  # its norm multiplies by 1 + weight
        ("phi3", GROUPED, {"Phi3RMSNorm"}),  # its gate and up are one matrix
        ("gpt2", {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}, set()),
    ],
)
def test_logits_are_the_same_bits_and_gradients_equal(kind, values, expected):
    plain = tiny_model(kind, byte_level(), **values)
    lean = copy.deepcopy(plain)
    keep_less(lean)
    assert replaced(lean) == expected
    wanted, found = gradients(plain), gradients(lean)
    assert torch.equal(wanted[0], found[0])
    assert wanted[1].keys() == found[1].keys()
    for name, gradient in wanted[1].items():
        assert (found[1][name] - gradient).norm() <= 3e-6 * gradient.norm(), name


@pytest.mark.parametrize("checkpointing", [False, True])
def test_an_adapter_in_float32_learns_the_same_from_inputs_as_they_come(checkpointing):
    """And, recomputed, the backward pass finds what the forward pass kept."""
    plain = add_lora(tiny_model("llama", byte_level(), **GROUPED).bfloat16(), LORA, None, 0)
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.linspace(-0.1, 0.1, parameter.numel()).view_as(parameter))
    lean = copy.deepcopy(plain)
    if checkpointing:
        recompute_activations(lean)
    with inputs_as_they_come(adapted_layers(lean), "cpu"):
        pass  # without autocast nothing changes, and afterwards peft casts again
    assert all(layer.cast_input_dtype_enabled for layer in adapted_layers(lean))
    wanted = gradients(plain, autocast=True)

    class Whole(torch.nn.Module):
        def forward(self, **inputs):
            with inputs_as_they_come(adapted_layers(lean), "cpu"):
                assert not any(layer.cast_input_dtype_enabled for layer in layers)
                return lean(**inputs)

    layers = adapted_layers(lean)
    whole = Whole()
    whole.model = lean
    found = gradients(whole, autocast=True)
    assert torch.equal(wanted[0], found[0])
    assert [g.dtype for g in found[1].values()] == [torch.float32] * len(wanted[1])
    for name, gradient in wanted[1].items():
        assert torch.equal(found[1][f"model.{name}"], gradient), name


def test_dropout_in_adapters_falls_alike_where_layers_are_computed_again():
    """Under autocast: the inputs of adapters have one dtype in both passes."""
    kept = add_lora(tiny_model("llama", byte_level(), **GROUPED).bfloat16(), DROPPING, None, 0)
    again = copy.deepcopy(kept)
    recompute_activations(again)
    found = []
    for model in (kept, again):
        objective = CausalLoss(model.train())
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16):
            loss = objective(input_ids=IDS, labels=IDS, predictors=torch.arange(8))
        loss.backward()
        found.append([parameter.grad for parameter in model.parameters() if parameter.requires_grad])
    assert all(gradient.any() for gradient in found[0])
    assert all(map(torch.equal, *found))


def kept_bytes(model, *, dtype=torch.bfloat16):
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.train().get_decoder()(input_ids=IDS, use_cache=False)
    return sum(storage.nbytes() for storage in kept.values())


def test_less_is_kept_for_the_backward_pass():
    plain = tiny_model("llama", byte_level(), **GROUPED).bfloat16()
    lean = copy.deepcopy(plain)
    keep_less(lean)
    layers, rows, size, inner = 2, IDS.numel(), plain.config.hidden_size, plain.config.intermediate_size
    # A layer's two norms and the last one: a copy in float32 each; a gate's activation; in a trained model also what
    # was normed, which the weight's gradient needs.
    fewer = (2 * layers + 1) * rows * size * 4 + layers * rows * inner * 2
    assert kept_bytes(plain) - kept_bytes(lean) >= fewer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_chunk_makes_the_gradient_that_cross_entropy_has(dtype):
    torch.manual_seed(0)
    head = torch.nn.Linear(16, 50, bias=False).to(dtype).requires_grad_(False)
    with torch.no_grad():
        head.weight *= 20  # far apart, so that a probability is nearly 1
    hidden = torch.randn(9, 16).to(dtype).requires_grad_()
    targets = torch.randint(50, (9,))
    wanted = torch.nn.functional.cross_entropy(head(hidden).float(), targets, reduction="sum")
    (gradient,) = torch.autograd.grad(wanted, hidden)
    for chunk in (2, 100):
        found = head_loss(head, hidden, targets, chunk)
        (own,) = torch.autograd.grad(found, hidden)
        assert torch.allclose(found, wanted, rtol=1e-6)
        assert (own - gradient).norm() <= (1e-6 if dtype == torch.float32 else 1e-3) * gradient.norm()
