"""Rows that end one by one, and prompts that take their places, give what transformers' own loop gives."""

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model, wordpiece

from spt.score import generate as module
from spt.score.generate import generate, prompt_ids, runs

PROMPTS = [
    "Ann Lee directed", "The", "Daphne Barrington, who painted the", "東京は", "a b c d e f g", "abc", "Zoë", "NO",
    "The botanist of Oslo is", "lives in Lyon", "café", "xyz",
]  # fmt: skip


def ask(model, tokenizer, batch_size=4, **options):
    options = {"max_new_tokens": 20, **options}
    return generate(model, tokenizer, prompt_ids(tokenizer, PROMPTS), batch_size=batch_size, **options)


def uneven(kind, tokenizer, **values):
    """A model whose answers end at many different places."""
    model = tiny_model(kind, tokenizer, **values)
    model.generation_config.eos_token_id = list(range(0, len(tokenizer), 11))
    return model


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2", "bloom"])
@pytest.mark.parametrize("make", [byte_level, metaspace, wordpiece])
def test_answers_are_those_of_transformers_generate(kind, make, monkeypatch):
    tokenizer = make()
    model = uneven(kind, tokenizer, attention="eager")
    assert runs(model)
    found = [ask(model, tokenizer, size) for size in (1, 3, 12)]
    monkeypatch.setattr(module, "runs", lambda model: False)
    wanted = ask(model, tokenizer, 5)
    assert found == [wanted] * 3
    assert len({len(text) for text in wanted}) > 2, "answers of different lengths"


def test_a_window_is_kept_while_rows_join_and_leave(monkeypatch):
    tokenizer = byte_level()
    model = uneven("mistral", tokenizer, attention="sdpa", sliding_window=4, num_key_value_heads=2)
    found = ask(model, tokenizer, 3)
    monkeypatch.setattr(module, "runs", lambda model: False)
    assert found == ask(model, tokenizer, 1)


def test_a_row_that_has_ended_is_computed_no_more_and_its_place_is_taken():
    tokenizer = byte_level()
    model = uneven("llama", tokenizer)
    assert runs(model)
    rows = []
    model.register_forward_pre_hook(lambda _, __, named: rows.append(named["input_ids"].shape), with_kwargs=True)
    written = []
    choose = module.Rules.choose
    module.Rules.choose = lambda self, ids, *rest: (written.append(len(ids)), choose(self, ids, *rest))[1]
    try:
        ask(model, tokenizer, 4)
    finally:
        module.Rules.choose = choose
    assert max(count for count, _ in rows) == 4
    assert sum(count for count, _ in rows) == sum(written)
    # Twelve prompts in batches of four, each as long as its longest answer, would take more.
    assert sum(count for count, _ in rows) < 12 * 20 * 0.7


def test_an_architecture_without_keys_and_values_answers_batch_by_batch(capsys):
    tokenizer = byte_level()
    model = tiny_model("rwkv", tokenizer, attention="eager", attention_hidden_size=32)
    assert not runs(model)
    assert "batch by batch" in capsys.readouterr().err


def test_rows_that_do_not_fit_start_again_in_fewer(capsys):
    tokenizer = byte_level()
    model = uneven("llama", tokenizer)
    wanted = ask(model, tokenizer, 12)
    sampled = ask(model, tokenizer, 12, sample_seed=1)

    def limited(module, arguments, named):
        if len(named["input_ids"]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    model.register_forward_pre_hook(limited, with_kwargs=True)
    assert ask(model, tokenizer, 12) == wanted
    assert capsys.readouterr().err.count("out of memory") == 1
    assert ask(model, tokenizer, 12, sample_seed=1) == sampled


def test_a_sample_does_not_depend_on_its_batch():
    tokenizer = metaspace()
    model = tiny_model("llama", tokenizer)
    found = [ask(model, tokenizer, size, sample_seed=7) for size in (1, 5, 12)]
    assert found == [found[0]] * 3
    assert found[0] != ask(model, tokenizer, 5, sample_seed=8)
