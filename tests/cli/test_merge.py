"""`spt merge`: one model with the logits of base and adapter, written whole, reused, refused with a reason."""

import json
import sys
from pathlib import Path

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from spt import cli
from spt.config import Config, write_config
from spt.errors import InputError, MissingError, StaleError
from spt.model import load_tokenizer, load_trained, prepare_model
from spt.train import merge
from spt.train.save import save_final

IDS = torch.tensor([[3, 5, 9, 12], [5, 3, 9, 0]])
LORA = {"r": 4, "lora_alpha": 8}


def make_run(run, base, *, order_tag="auto", **model):
    """Write a finished run whose adapter is random; return the config."""
    model = {"base": str(base), "lora": LORA, **model}
    config = Config(
        name="t", output=str(run), data={"train": {"path": "x"}}, model=model, permute={"order_tag": order_tag}
    )
    dense = config.model.model_copy(update={"load_in_4bit": False})
    prepared = prepare_model(dense, load_tokenizer(dense), order_tag, seed=0)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in prepared.model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    save_final(config, prepared, run / "train")
    (run / "train/manifest.json").write_text("{}")
    write_config(config, run / "config.yaml")
    return config


def make_base(folder, tokenizer, kind="llama", **values):
    tiny_model(kind, tokenizer, **values).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def logits(model):
    with torch.no_grad():
        return model.eval()(IDS).logits.float()


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_merged_model_has_the_logits_of_base_and_adapter_and_never_writes_the_tag(tmp_path, kind, tied):
    make_run(tmp_path, make_base(tmp_path / "base", metaspace(), kind, tie_word_embeddings=tied))
    wanted = logits(load_trained(str(tmp_path / "train/final"))[0])
    folder = merge(tmp_path)
    assert folder == tmp_path / "train/merged"
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert torch.allclose(logits(model), wanted, atol=1e-4)
    assert model.generation_config.suppress_tokens == [metaspace().convert_tokens_to_ids("<unused0>")]
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == tied
    assert AutoTokenizer.from_pretrained(folder)("Ann Lee").input_ids == metaspace()("Ann Lee").input_ids


def test_with_half_of_an_adapter_the_weights_lie_half_way_between_base_and_trained(tmp_path):
    make_run(tmp_path, make_base(tmp_path / "base", metaspace()))
    at = {}
    for scale in (0.0, 0.5, 1.0):
        folder = merge(tmp_path, tmp_path / str(scale), scale=scale)
        at[scale] = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base").state_dict()
    moved = {name for name in base if not torch.equal(at[1.0][name], base[name])}
    embedding = "model.embed_tokens.weight"  # of which the tag's row is learned whole: it has nothing to lie between
    assert moved == {embedding} | {name for name in base if "_proj" in name}
    assert torch.equal(at[0.5][embedding], at[1.0][embedding])
    for name, weight in base.items():
        if name == embedding:
            continue
        torch.testing.assert_close(at[0.0][name], weight)
        torch.testing.assert_close(at[0.5][name], (weight + at[1.0][name]) / 2)
    with pytest.raises(StaleError, match=r"scale: 0\.5 -> 1\.0"):
        merge(tmp_path, tmp_path / "0.5")


def test_a_merged_model_is_reused_and_another_dtype_takes_its_place_only_by_force(tmp_path, capsys):
    make_run(tmp_path, make_base(tmp_path / "base", metaspace()))
    exact = logits(load_trained(str(tmp_path / "train/final"))[0])
    folder = merge(tmp_path)
    written = (folder / "model.safetensors").stat().st_mtime_ns
    (tmp_path / "train/final/README.md").write_text("a card that was written anew when scores came")
    merge(tmp_path)
    assert "reused" in capsys.readouterr().err
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    with pytest.raises(StaleError, match='dtype: "float32" -> "bfloat16"'):
        merge(tmp_path, dtype="bfloat16")
    model, _ = load_trained(str(merge(tmp_path, dtype="bfloat16", force=True)), dtype="bfloat16")
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    assert (logits(model) - exact).abs().max() < 0.05 * exact.abs().max()
    assert not list((tmp_path / "train").glob(".*tmp"))


def test_a_base_of_gguf_or_in_4_bits_is_merged_in_its_dense_form(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "model"))
    from test_model_source import write_gguf

    write_gguf(tmp_path / "m.gguf", tiny_model("llama", byte_level(), scale=0.2), byte_level())
    make_run(tmp_path / "run", tmp_path / "m.gguf", order_tag="[moved] ", load_in_4bit=True)
    wanted = logits(load_trained(str(tmp_path / "run/train/final"))[0])
    model = AutoModelForCausalLM.from_pretrained(merge(tmp_path / "run"))
    assert torch.allclose(logits(model), wanted, atol=1e-4)
    assert model.generation_config.bad_words_ids


def test_what_cannot_be_merged_says_what_it_is(tmp_path):
    with pytest.raises(MissingError, match="holds no finished training"):
        merge(tmp_path)
    base = make_base(tmp_path / "base", metaspace())
    make_run(tmp_path / "whole", base, lora=None)
    with pytest.raises(InputError, match=r"whole/train/final: holds no adapter but a whole model .* load it as it is"):
        merge(tmp_path / "whole")
    make_run(tmp_path / "run", base)
    with pytest.raises(InputError, match="--dtype float64: give one of float32"):
        merge(tmp_path / "run", dtype="float64")
    with pytest.raises(InputError, match=r"--scale 1\.5: give a number from 0 \(the base\) to 1"):
        merge(tmp_path / "run", scale=1.5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("do not lose me")
    with pytest.raises(StaleError, match="mine: holds files that spt did not merge"):
        merge(tmp_path / "run", tmp_path / "mine")
    assert (tmp_path / "mine/notes.txt").exists()


def test_the_command_prints_where_the_model_lies(tmp_path, monkeypatch, capsys):
    make_run(tmp_path / "run", make_base(tmp_path / "base", metaspace()))
    arguments = ["spt", "merge", str(tmp_path / "run"), "--output", str(tmp_path / "out"), "--json", "--quiet"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    result = json.loads(capsys.readouterr().out)
    assert (result["merged"], result["dtype"]) == (str(tmp_path / "out"), "float32")
    assert (tmp_path / "out/model.safetensors").exists()
