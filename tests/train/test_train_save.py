"""The final folder: an adapter is read back after it is written, and one that learned nothing is an error."""

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model
from safetensors.torch import load_file, save_file

from spt.checkpoint import State, Trained, generators, load_checkpoint, save_checkpoint
from spt.config import Config
from spt.errors import DamagedError, WorkError
from spt.model import load_tokenizer, load_trained, prepare_model
from spt.train.save import save_final

LORA = {"r": 4, "lora_alpha": 8}


@pytest.fixture
def config(tmp_path):
    return make_config(tmp_path, metaspace())


def make_config(folder, tokenizer, lora=LORA, **values):
    tiny_model("llama", tokenizer, **values).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    model = {"base": str(folder / "base"), "lora": lora}
    return Config(name="t", data={"train": {"path": "x"}}, model=model, permute={"order_tag": "auto"})


def prepare(config):
    return prepare_model(config.model, load_tokenizer(config.model), "auto", seed=0)


def train(prepared, steps=2):
    optimizer = torch.optim.AdamW([p for p in prepared.model.parameters() if p.requires_grad], lr=1e-2)
    ids = torch.tensor([[prepared.tag.token_id, 5, 9, 12]])
    for _ in range(steps):
        prepared.model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return Trained(prepared.model, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer))


def test_every_matrix_b_has_learned_after_two_steps_and_nothing_is_said(config, tmp_path, capsys):
    prepared = prepare(config)
    train(prepared)
    save_final(config, prepared, tmp_path)
    assert "warning" not in capsys.readouterr().err
    stored = load_file(tmp_path / "final/adapter_model.safetensors")
    matrices = [tensor for name, tensor in stored.items() if "lora_B" in name]
    assert len(matrices) == 14
    assert all(tensor.any() for tensor in matrices)


def test_an_adapter_that_learned_nothing_is_an_error_and_a_part_of_it_a_warning(config, tmp_path, capsys):
    prepared = prepare(config)
    with pytest.raises(WorkError, match="the adapter learned nothing: all 14 of its B matrices are zeros"):
        save_final(config, prepared, tmp_path)
    assert not (tmp_path / "final").exists()
    train(prepared)
    with torch.no_grad():
        prepared.model.get_submodule("base_model.model.model.layers.1.mlp.up_proj.lora_B.default").weight.zero_()
    save_final(config, prepared, tmp_path)
    said = " ".join(capsys.readouterr().err.split())
    assert "no gradient reached the adapter of 1 modules: model.layers.1.mlp.up_proj" in said


@pytest.mark.parametrize("damage", ["other", "lost", "cut", "infinite"])
def test_an_adapter_file_that_is_not_what_was_trained_is_never_called_final(config, tmp_path, monkeypatch, damage):
    prepared = prepare(config)
    train(prepared)
    write = prepared.model.save_pretrained

    def broken(folder):
        if damage == "infinite":
            with torch.no_grad():
                next(p for p in prepared.model.parameters() if p.requires_grad).fill_(float("inf"))
        write(folder)
        file = folder / "adapter_model.safetensors"
        tensors = load_file(file)
        name = sorted(tensors)[-1]
        if damage == "other":
            tensors[name][0] += 1e-3
        if damage == "lost":
            del tensors[name]
        save_file(tensors, file)
        if damage == "cut":
            file.write_bytes(file.read_bytes()[:-1])

    monkeypatch.setattr(prepared.model, "save_pretrained", broken)
    with pytest.raises(DamagedError, match=r"adapter_model\.safetensors"):
        save_final(config, prepared, tmp_path)
    assert not (tmp_path / "final").exists()


@pytest.mark.parametrize("lora", [None, LORA])
@pytest.mark.parametrize("tokenizer", [metaspace, byte_level])
def test_tied_embeddings_and_the_tag_survive_checkpoint_reload_and_final(tmp_path, lora, tokenizer):
    config = make_config(tmp_path, tokenizer(), lora, tie_word_embeddings=True)
    prepared, again = prepare(config), prepare(config)
    trained = train(prepared)
    save_checkpoint(tmp_path / "c", State(step=2), trained, [generators()], 1)
    load_checkpoint(tmp_path / "c/step-000002", train(again, 1), 0, 9)
    ids = torch.tensor([[prepared.tag.token_id, 5, 9, 12]])
    with torch.no_grad():
        wanted = prepared.model.eval()(ids).logits
        assert torch.equal(again.model.eval()(ids).logits, wanted)
        save_final(config, again, tmp_path)
        model, _ = load_trained(str(tmp_path / "final"))
        assert torch.allclose(model(ids).logits, wanted, atol=1e-4)
    assert model.get_input_embeddings().weight.shape[0] == len(tokenizer()) + prepared.grown
