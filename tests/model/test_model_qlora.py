"""4-bit bases: refused with what to do wherever they cannot be trained; loaded as QLoRA says where they can."""

import copy

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model

from spt.config import Model
from spt.errors import ModelError
from spt.model import load, prepare_model


def settings(tmp_path, **values):
    tokenizer = metaspace()
    tiny_model("llama", tokenizer).save_pretrained(tmp_path)
    return Model(**{"base": str(tmp_path), "lora": {"r": 4}, "load_in_4bit": True, **values}), tokenizer


def test_a_base_in_four_bits_is_refused_where_it_would_be_trained_whole(tmp_path):
    with pytest.raises(ModelError, match=r"load_in_4bit: 4-bit weights cannot be trained; give model\.lora"):
        prepare_model(*settings(tmp_path, lora=None), None, seed=0)


def test_without_bitsandbytes_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install bitsandbytes"):
        prepare_model(*settings(tmp_path), None, seed=0)


def test_without_a_device_a_base_in_four_bits_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(ModelError, match="needs a GPU, and there is none here"):
        prepare_model(*settings(tmp_path), None, seed=0)


def test_a_base_in_four_bits_is_loaded_as_nf4_on_the_device_of_its_rank(tmp_path, monkeypatch):
    asked = {}
    monkeypatch.setattr(load, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setenv("LOCAL_RANK", "3")
    read = load._load

    def loaded(what, place, revision, trust_remote_code, **extra):
        asked.update({name: extra.pop(name) for name in ("quantization_config", "device_map")})
        return read(what, place, revision, trust_remote_code, **extra)

    monkeypatch.setattr(load, "_load", loaded)
    prepared = prepare_model(*settings(tmp_path, dtype="bfloat16"), None, seed=0)
    quantization = asked["quantization_config"]
    assert (quantization.load_in_4bit, quantization.bnb_4bit_quant_type) == (True, "nf4")
    assert quantization.bnb_4bit_use_double_quant
    assert quantization.bnb_4bit_compute_dtype == torch.bfloat16
    assert asked["device_map"] == {"": "cuda:3"}
    assert all("lora" in name for name, weight in prepared.model.named_parameters() if weight.requires_grad)


def test_a_tag_that_would_have_to_be_merged_into_four_bits_is_refused(tmp_path, monkeypatch):
    tiny_model("llama", byte_level()).save_pretrained(tmp_path)
    monkeypatch.setattr(load, "_four_bits", lambda dtype: {})
    wanted = Model(base=str(tmp_path), lora={"r": 4}, load_in_4bit=True)
    with pytest.raises(ModelError, match="adds a token, which would be merged into the base"):
        prepare_model(wanted, copy.deepcopy(byte_level()), "auto", seed=0)
