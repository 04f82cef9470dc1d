"""A base is a Hub id, a folder, or a GGUF file; what identifies it is its content."""

import io
import json
import os
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from fakes import byte_level, tiny_model

from spt.config import Model
from spt.errors import ModelError
from spt.model import fingerprint, load_base, load_tokenizer, resolve_base


def write_gguf(path, model, tokenizer):
    """Write a Llama model as llama.cpp's converter does: its names, its rotary layout, its tokenizer."""
    config, heads = model.config, model.config.num_attention_heads
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokenizer))
    inner = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([token for token, _ in sorted(inner["vocab"].items(), key=lambda item: item[1])])
    writer.add_token_types([3 if n == tokenizer.eos_token_id else 1 for n in range(len(tokenizer))])
    writer.add_token_merges([" ".join(pair) for pair in inner["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_bos_token_id(tokenizer.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        for kind, count in (("q_proj", heads), ("k_proj", config.num_key_value_heads)):
            if kind in name:
                rows, columns = tensor.shape
                tensor = tensor.reshape(count, 2, rows // count // 2, columns).swapaxes(1, 2).reshape(rows, columns)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), tensor.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, tiny_model("llama", byte_level(), scale=0.2), byte_level())
    return path


def test_a_gguf_file_becomes_a_folder_once_with_the_same_logits_and_tokens(gguf_file):
    settings = Model(base=str(gguf_file))
    model, tokenizer = load_base(settings), load_tokenizer(settings)
    ids = torch.tensor([byte_level()("Ann Lee directed The Sea.")["input_ids"]])
    assert tokenizer("Ann Lee directed The Sea.", add_special_tokens=False)["input_ids"] == ids[0].tolist()
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, tiny_model("llama", byte_level(), scale=0.2)(ids).logits, atol=1e-4)
    folder = Path(resolve_base(str(gguf_file)))
    assert folder == gguf_file.with_name("tiny.gguf.dequantized")
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert resolve_base(str(gguf_file)) == str(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


def test_a_changed_gguf_file_is_dequantized_anew(gguf_file, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_file.read_bytes())
    first = load_base(Model(base=str(path))).get_input_embeddings().weight
    write_gguf(path, tiny_model("llama", byte_level(), seed=9), byte_level())
    second = load_base(Model(base=str(path))).get_input_embeddings().weight
    assert not torch.equal(first, second)


def test_a_prepared_gguf_file_in_a_folder_that_cannot_be_written_is_used(gguf_file, monkeypatch):
    folder = resolve_base(str(gguf_file))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert resolve_base(str(gguf_file)) == folder


def test_a_file_that_is_no_gguf_is_named(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF, not really")
    with pytest.raises(ModelError, match=r"broken\.gguf: cannot be read as a GGUF model"):
        resolve_base(str(tmp_path / "broken.gguf"))
    assert not (tmp_path / "broken.gguf.dequantized").exists()


@pytest.mark.parametrize("base", ["./nowhere", "a/b/c", "nowhere.gguf", "~/nowhere-at-all"])
def test_a_path_that_is_not_there_is_named(base):
    with pytest.raises(ModelError, match="is not there; give a Hub id, a folder"):
        resolve_base(base)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        resolve_base(str(tmp_path))


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_base("~/m") == str(tmp_path / "m")
    assert fingerprint("~/m") == fingerprint(str(tmp_path / "m"))


def test_a_hub_id_stays_what_it_is():
    assert resolve_base("owner/name") == "owner/name"
    assert fingerprint("owner/name", "v1") == {"id": "owner/name", "revision": "v1"}


def test_a_fingerprint_follows_the_content_and_not_the_path(tmp_path):
    one, two = tmp_path / "one", tmp_path / "elsewhere" / "two"
    for folder in (one, two):
        (folder / "inner").mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "inner/x.bin").write_bytes(b"weights")
    assert fingerprint(str(one)) == fingerprint(str(two))
    assert fingerprint(str(one / "inner/x.bin")) == fingerprint(str(two / "inner/x.bin"))
    (two / "inner/x.bin").rename(two / "inner/y.bin")
    assert fingerprint(str(one / "inner/x.bin")) == fingerprint(str(two / "inner/y.bin"))
    assert fingerprint(str(one)) != fingerprint(str(two))
    (one / "inner/x.bin").write_bytes(b"weighty")
    assert fingerprint(str(one / "inner/x.bin")) != fingerprint(str(two / "inner/y.bin"))


def test_every_byte_of_a_small_file_and_any_run_in_a_large_one_counts(tmp_path):
    path = tmp_path / "w.bin"
    for size, run in ((1000, 1), (2 << 20, 1), (64 << 20, 2 << 20)):
        data = np.zeros(size, np.uint8)
        data.tofile(path)
        seen = {fingerprint(str(path))["sha256"]}
        for start in (0, size // 3, size // 2, size - run):
            data[:] = 0
            data[start : start + run] = 1
            data.tofile(path)
            seen.add(fingerprint(str(path))["sha256"])
        assert len(seen) == 5


def test_of_a_large_model_little_is_read_for_its_fingerprint(tmp_path, monkeypatch):
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(20 << 30)  # a hole: nothing is written
    read = []

    class Counted(io.FileIO):
        def read(self, size=-1):
            read.append(len(found := super().read(size)))
            return found

    monkeypatch.setattr(Path, "open", lambda path, mode: Counted(path, mode))
    fingerprint(str(tmp_path))
    assert 1 << 20 <= sum(read) <= 4 << 20
