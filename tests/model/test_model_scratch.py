"""A tokenizer and a model without pretraining: deterministic, and strict about what they are given."""

import json
import os
import subprocess
import sys

import pytest
import torch
from fakes import CORPUS, TEXT, tiny_config
from hypothesis import given
from transformers import AutoTokenizer

from spt.config import FromScratch
from spt.encode import frame_of
from spt.errors import ModelError
from spt.model import build_model, train_tokenizer

# Many words of equal frequency: ties are where an order of threads or hashes would show.
TIES = [f"{a}{b}{c}{d} " for a in "abcd" for b in "efgh" for c in "ijkl" for d in "mnop"] + CORPUS


@pytest.fixture(scope="module")
def trained():
    return train_tokenizer(TIES, 400)


def test_equal_texts_train_an_equal_tokenizer_in_any_process_with_any_threads(trained):
    code = (
        "import json, sys; from spt.model.scratch import train_tokenizer; "
        "sys.stdout.write(ascii(train_tokenizer(json.loads(sys.argv[1]), 400).backend_tokenizer.to_str()))"
    )
    command = [sys.executable, "-c", code, json.dumps(TIES)]
    processes = [
        subprocess.Popen(
            command, env={**os.environ, "RAYON_NUM_THREADS": n, "PYTHONHASHSEED": n}, stdout=subprocess.PIPE
        )
        for n in ("1", "4")
    ]
    wanted = trained.backend_tokenizer.to_str()
    assert train_tokenizer(iter(TIES), 400).backend_tokenizer.to_str() == wanted
    assert [process.communicate()[0].decode() for process in processes] == [ascii(wanted)] * 2


@given(text=TEXT)
def test_any_string_is_encoded_and_decoded_to_itself(trained, text):
    assert trained.decode(trained(text, add_special_tokens=False)["input_ids"]) == text


def test_a_saved_tokenizer_is_the_same_and_frames_a_text_alike(trained, tmp_path):
    trained.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.backend_tokenizer.to_str() == trained.backend_tokenizer.to_str()
    assert frame_of(again) == frame_of(trained)
    assert frame_of(again).prefix == (again.bos_token_id,)
    assert frame_of(again).suffix == (again.eos_token_id,)


def test_a_vocabulary_below_the_bytes_is_refused_with_the_least():
    with pytest.raises(ModelError, match=r"vocab_size: 259; .* need 260"):
        train_tokenizer(CORPUS, 259)
    assert len(train_tokenizer(CORPUS, 260)) == 260


def test_a_seed_decides_the_weights(trained):
    settings = FromScratch(config=tiny_config())
    one, same, other = (build_model(settings, trained, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["model.embed_tokens.weight"], other["model.embed_tokens.weight"])
    assert one["model.embed_tokens.weight"].shape == (len(trained), 32)
    assert {tensor.dtype for tensor in one.values()} == {torch.float32}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "lama"}, "model_type: unknown 'lama'. Did you mean llama"),
        ({"hiden_size": 8}, "config.hiden_size: unknown key. Did you mean hidden_size"),
        ({"qqqqq": 8}, "config.qqqqq: unknown key. It is no key of a llama config"),
        ({"vocab_size": 8}, "config.vocab_size: comes from the tokenizer; remove it"),
        ({"hidden_size": "wide"}, "config: .*hidden_size"),
        ({"hidden_size": 30}, "config: .*not a multiple of the number of attention heads"),
        ({"hidden_act": "sillu"}, "config: .*sillu"),
    ],
)
def test_a_wrong_config_is_named_with_the_nearest_key(trained, values, message):
    with pytest.raises(ModelError, match="(?s)" + message):
        build_model(FromScratch(config={**tiny_config(), **values}), trained, 0)


def test_a_key_that_transformers_reads_into_another_is_accepted(trained):
    model = build_model(FromScratch(config={**tiny_config(), "rope_theta": 5000.0}), trained, 0)
    assert model.config.rope_parameters["rope_theta"] == 5000.0
