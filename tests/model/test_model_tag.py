"""The order tag: a reserved token where there is one, else a new token that starts as the mean of the others."""

import copy

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model
from transformers import GenerationConfig

from spt.errors import ModelError
from spt.model.tag import NEW_TOKEN, choose_tag, fit_embeddings, suppress_tag
from spt.records import Tag


@pytest.fixture
def bytes_tokenizer():
    return copy.deepcopy(byte_level())


def test_a_reserved_token_is_taken_and_nothing_changes():
    tokenizer = copy.deepcopy(metaspace())
    tag = choose_tag(tokenizer, "auto")
    assert tokenizer.convert_ids_to_tokens(tag.token_id) == "<unused0>"
    assert not tag.new
    assert len(tokenizer) == len(metaspace())
    model = tiny_model("llama", tokenizer)
    before = copy.deepcopy(model.state_dict())
    assert not fit_embeddings(model, tag)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_without_a_reserved_token_one_is_added_that_is_special_once(bytes_tokenizer):
    tag = choose_tag(bytes_tokenizer, "auto")
    assert tag == Tag(token_id=len(byte_level()), new=True)
    assert bytes_tokenizer.decode([tag.token_id]) == NEW_TOKEN
    assert bytes_tokenizer.decode([tag.token_id], skip_special_tokens=True) == ""
    again = choose_tag(bytes_tokenizer, "auto")
    assert again == Tag(token_id=tag.token_id, new=False)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("spare", [0, 3])
def test_new_rows_are_the_mean_and_the_vocabulary_grows_only_where_it_must(kind, tied, spare, bytes_tokenizer):
    model = tiny_model(kind, bytes_tokenizer, tie_word_embeddings=tied)
    model.resize_token_embeddings(len(bytes_tokenizer) + spare, mean_resizing=False)
    known = len(bytes_tokenizer)
    means = [layer.weight[:known].mean(0) for layer in (model.get_input_embeddings(), model.get_output_embeddings())]
    tag = choose_tag(bytes_tokenizer, "auto")
    assert fit_embeddings(model, tag) == (spare == 0)
    assert model.config.vocab_size == model.get_input_embeddings().weight.shape[0] == known + max(spare, 1)
    for layer, mean in zip((model.get_input_embeddings(), model.get_output_embeddings()), means, strict=True):
        assert torch.allclose(layer.weight[tag.token_id], mean, atol=1e-6)
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == tied


def test_a_tag_that_was_trained_before_keeps_its_row(bytes_tokenizer):
    choose_tag(bytes_tokenizer, "auto")
    model = tiny_model("llama", bytes_tokenizer)
    before = model.get_input_embeddings().weight.detach().clone()
    assert not fit_embeddings(model, choose_tag(bytes_tokenizer, "auto"))
    assert torch.equal(model.get_input_embeddings().weight, before)


def test_a_tag_is_a_token_by_name_or_plain_text():
    tokenizer = metaspace()
    assert choose_tag(tokenizer, None) is None
    assert choose_tag(tokenizer, "<unused0>") == Tag(token_id=3)
    assert choose_tag(tokenizer, "[moved] ") == Tag(text="[moved] ")


@pytest.mark.parametrize("name", ["<s>", "</s>", "<unk>"])
def test_a_tag_that_means_something_else_is_refused(name):
    with pytest.raises(ModelError, match=r"order_tag: .* begins, ends, pads or replaces"):
        choose_tag(metaspace(), name)


def test_a_blank_tag_is_refused():
    with pytest.raises(ModelError, match="is blank"):
        choose_tag(metaspace(), "  ")


def test_generation_never_writes_the_tag_nor_what_was_suppressed_before():
    config = GenerationConfig(suppress_tokens=[1])
    suppress_tag(config, byte_level(), Tag(token_id=9))
    assert config.suppress_tokens == [1, 9]
    suppress_tag(config, byte_level(), Tag(text="moved: "))
    assert config.bad_words_ids == [byte_level()("moved:")["input_ids"]]
    suppress_tag(config, byte_level(), None)
    assert (config.suppress_tokens, len(config.bad_words_ids)) == ([1, 9], 1)
