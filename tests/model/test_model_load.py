"""What is trained is in float32, and comes back from disk with the same logits."""

import copy
import json

import pytest
import torch
from fakes import byte_level, metaspace, tiny_config, tiny_model

import spt.model.load
from spt.config import Config, Model
from spt.errors import ModelError
from spt.model import check_lora, load_base, load_tokenizer, load_trained, prepare_model
from spt.model.tag import NEW_TOKEN
from spt.train.save import save_final

LORA = {"r": 4, "lora_alpha": 8}
RESERVED = {"reserved": metaspace, "none": byte_level}


def save_base(folder, tokenizer, kind="llama", **values):
    tiny_model(kind, tokenizer, **values).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def prepare(base, order_tag="auto", **values):
    settings = Model(base=base, **values)
    return prepare_model(settings, load_tokenizer(settings), order_tag, seed=0)


def finish(prepared, base, folder, **values):
    config = Config(
        name="t", data={"train": {"path": "x"}}, model={"base": base, **values}, permute={"order_tag": "auto"}
    )
    save_final(config, prepared, folder)
    return str(folder / "final")


def disturb(model):
    """Move every trained weight, as training would."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.05)


def trained(base, **values):
    prepared = prepare(base, **values)
    disturb(prepared.model)
    return prepared


def logits(model, ids):
    with torch.no_grad():
        return model.eval()(ids).logits


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("lora", [None, LORA])
@pytest.mark.parametrize("reserved", sorted(RESERVED))
def test_what_was_trained_comes_back_with_equal_logits_and_a_suppressed_tag(kind, tied, lora, reserved, tmp_path):
    base = save_base(tmp_path / "base", RESERVED[reserved](), kind, tie_word_embeddings=tied)
    prepared = prepare(base, lora=lora)
    tag = prepared.tag.token_id
    assert prepared.grown == (reserved == "none")
    disturb(prepared.model)
    ids = torch.tensor([[tag, 5, 9, 12], [5, tag, 9, 0]])
    wanted = logits(prepared.model, ids)
    place = finish(prepared, base, tmp_path / "train", lora=lora)
    model, tokenizer = load_trained(place)
    assert torch.allclose(logits(model, ids), wanted, atol=1e-4)
    assert model.generation_config.suppress_tokens == [tag]
    assert tokenizer.convert_ids_to_tokens(tag) == (NEW_TOKEN if prepared.grown else "<unused0>")
    assert not model.training
    # Only the fitting adapter stays one; what grew is a whole model that loads anywhere.
    assert (tmp_path / "train/final/adapter_config.json").exists() == (lora is not None and not prepared.grown)


@pytest.mark.parametrize("tied", [True, False])
def test_a_new_tag_in_a_spare_row_of_the_base_stays_an_adapter(tied, tmp_path):
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer, tie_word_embeddings=tied)
    model.resize_token_embeddings(len(tokenizer) + 8, mean_resizing=False)
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    base = str(tmp_path / "base")
    prepared = prepare(base, lora=LORA)
    assert not prepared.grown
    disturb(prepared.model)
    ids = torch.tensor([[prepared.tag.token_id, 5, 9, 12]])
    wanted = logits(prepared.model, ids)
    found = logits(load_trained(finish(prepared, base, tmp_path / "train", lora=LORA))[0], ids)
    # The tag's own column is never used, and an untied base keeps its own row there.
    columns = [n for n in range(wanted.shape[-1]) if n != prepared.tag.token_id]
    assert torch.allclose(found[..., columns], wanted[..., columns], atol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_reserved_tag_is_trained_through_lora_and_nothing_else_of_the_embedding(kind, tmp_path):
    prepared = prepare(save_base(tmp_path, metaspace(), kind), lora=LORA)
    prepared.model.train()
    prepared.model(torch.tensor([[1, 3, 5, 9]])).logits.square().sum().backward()
    rows = {name: p for name, p in prepared.model.named_parameters() if p.requires_grad and "lora_" not in name}
    (row,) = rows.values()
    assert row.shape == (1, 32)
    assert row.grad.abs().sum() > 0


def test_what_is_trained_is_in_float32_whatever_is_computed_in(tmp_path):
    base = save_base(tmp_path, metaspace())
    for lora in (None, LORA):
        model = prepare(base, lora=lora, dtype="bfloat16").model
        assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
        frozen = {p.dtype for p in model.parameters() if not p.requires_grad}
        assert frozen == (set() if lora is None else {torch.bfloat16})
    assert load_base(Model(base=base, dtype="bfloat16")).dtype == torch.bfloat16


def test_a_seed_decides_the_adapter(tmp_path):
    base = save_base(tmp_path, metaspace())
    one, same = (prepare(base, lora=LORA).model.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], same[name]) for name in one)


def test_a_model_from_scratch_has_its_tag_and_comes_back(tmp_path):
    from spt.model import train_tokenizer

    tokenizer = train_tokenizer(["Ann Lee"], 300)
    settings = Model(from_scratch={"config": tiny_config()})
    prepared = prepare_model(settings, tokenizer, "auto", seed=0)
    assert tokenizer.convert_ids_to_tokens(prepared.tag.token_id) == "<|reserved_0|>"
    config = Config(name="t", data={"train": {"path": "x"}}, model=settings)
    save_final(config, prepared, tmp_path)
    model, _ = load_trained(str(tmp_path / "final"))
    ids = torch.tensor([[1, 3, 5]])
    assert torch.equal(logits(model, ids), logits(prepared.model, ids))
    assert model.generation_config.suppress_tokens == [prepared.tag.token_id]


def test_an_adapter_remembers_the_revision_of_its_base(tmp_path, monkeypatch):
    base = save_base(tmp_path / "base", metaspace())
    prepared = trained(base, lora=LORA, revision="v1.5")
    place = finish(prepared, base, tmp_path / "train", lora=LORA, revision="v1.5")
    asked = []
    load = spt.model.load._load

    def record(what, where, revision, *rest, **extra):
        asked.append((what, where, revision))
        return load(what, where, revision, *rest, **extra)

    monkeypatch.setattr(spt.model.load, "_load", record)
    load_trained(place)
    assert asked == [("model", base, "v1.5"), ("tokenizer", place, None)]


@pytest.mark.parametrize(
    ("lora", "message"),
    [
        ({"lora_alfa": 8}, "model.lora.lora_alfa: unknown key. Did you mean lora_alpha?"),
        ({"qqqqq": 8}, "model.lora.qqqqq: unknown key. It is no key of peft's LoraConfig"),
    ],
)
def test_a_wrong_lora_key_is_named_before_anything_loads(lora, message):
    with pytest.raises(ModelError, match=message):
        check_lora(lora)


@pytest.mark.parametrize(
    "lora", [{"target_modules": ["nope"]}, {"r": -1}, {"trainable_token_indices": {"embed_tokens": [1]}}]
)
def test_lora_values_that_peft_refuses_are_the_users(lora, tmp_path):
    with pytest.raises(ModelError, match=r"model\.lora"):
        prepare(save_base(tmp_path, metaspace()), lora={**LORA, **lora})


def test_a_tag_joins_the_token_rows_that_are_trained_anyway(tmp_path):
    prepared = prepare(save_base(tmp_path, metaspace()), lora={**LORA, "trainable_token_indices": [5, 3]})
    assert prepared.model.peft_config["default"].trainable_token_indices == [3, 5]


def test_a_hub_id_that_cannot_be_reached_is_named_with_the_remedy():
    with pytest.raises(ModelError, match=r"no-such/model: the model cannot be loaded .* offline, a folder"):
        load_trained("no-such/model")
    with pytest.raises(ModelError, match="no-such/model: the tokenizer cannot be loaded"):
        load_tokenizer(Model(base="no-such/model"))


def test_damaged_weights_are_named_with_their_folder(tmp_path):
    base = save_base(tmp_path / "base", metaspace())
    weights = tmp_path / "base/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match="base: the model cannot be loaded"):
        load_trained(base)


@pytest.mark.parametrize("damage", ["lost", "foreign"])
def test_an_adapter_that_does_not_fit_its_base_is_named(damage, tmp_path):
    base = save_base(tmp_path / "base", metaspace())
    place = finish(trained(base, lora=LORA), base, tmp_path / "train", lora=LORA)
    if damage == "lost":
        (tmp_path / "train/final/adapter_model.safetensors").unlink()
    else:
        save_base(tmp_path / "base", metaspace(), hidden_size=64)
    with pytest.raises(ModelError, match="adapter does not load onto"):
        load_trained(place)


def test_loading_leaves_the_tokenizer_of_the_base_alone(tmp_path):
    base = save_base(tmp_path / "base", copy.deepcopy(byte_level()))
    finish(trained(base, lora=LORA), base, tmp_path / "train", lora=LORA)
    assert NEW_TOKEN not in json.loads((tmp_path / "base/tokenizer.json").read_text())["added_tokens"]
    assert NEW_TOKEN not in load_tokenizer(Model(base=base)).get_vocab()


def test_weights_missing_from_a_base_are_named_instead_of_drawn_at_random(tmp_path):
    from safetensors.torch import load_file, save_file

    base = save_base(tmp_path / "base", byte_level(), tie_word_embeddings=False)
    file = tmp_path / "base" / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 weights are missing \(model\.layers\.0\.mlp\.up_proj\.weight"):
        load_base(Model(base=base))
