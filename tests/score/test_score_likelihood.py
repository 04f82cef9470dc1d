"""Log-probabilities are exact in any batch, and every continuation counts whole."""

from math import exp

import pytest
import torch
from fakes import CORPUS, TEXT, byte_level, metaspace, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from spt.encode import IGNORED, frame_of
from spt.errors import ModelError
from spt.records import join_texts
from spt.score.likelihood import continuation_examples, log_probabilities
from spt.score.retention import perplexity_of

PAIRS = [
    ("Ann Lee directed", "The Sea."),
    ("The botanist of Oslo is", "Uriah Hawthorne"),
    ("Ann", "Lee"),
    ("Daphne Barrington, who painted the harbour,", "lives in Lyon."),
    ("abc", "NO"),
]


def nats_after(model, given, continuation):
    """The log-probability of ids after ids, one forward pass, in float64."""
    with torch.no_grad():
        logits = model(torch.tensor([given + continuation])).logits[0].double().log_softmax(-1)
    return sum(logits[len(given) + n - 1, token].item() for n, token in enumerate(continuation))


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_any_batch_gives_what_one_text_after_another_gives(kind, batch_size, tokenizer):
    model = tiny_model(kind, tokenizer)
    prefix = list(frame_of(tokenizer).prefix)
    found = log_probabilities(model, tokenizer, PAIRS, batch_size)
    for (prompt, continuation), (nats, tokens) in zip(PAIRS, found, strict=True):
        before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        ids = tokenizer(f"{prompt} {continuation}", add_special_tokens=False)["input_ids"]
        assert ids[: len(before)] == before
        assert tokens == len(ids) - len(before)
        assert nats == pytest.approx(nats_after(model, prefix + before, ids[len(before) :]), rel=1e-4)


@given(text=st.sampled_from(CORPUS), data=st.data())
def test_a_continuation_is_the_last_tokens_of_the_whole_and_never_empty(tokenizer, text, data):
    cut = data.draw(st.integers(0, len(text) - 1))
    prompt, continuation = text[:cut], text[cut:]
    (example,) = continuation_examples(tokenizer, [(prompt, continuation)])
    whole = join_texts(prompt, continuation)
    ids = tokenizer(whole, add_special_tokens=False)["input_ids"]
    assert list(example.input_ids[-len(ids) :]) == ids
    extra = example.input_ids[: -len(ids)]
    assert extra == frame_of(tokenizer).prefix or (not frame_of(tokenizer).prefix and len(extra) == 1)
    learned = [place for place, label in enumerate(example.labels) if label != IGNORED]
    assert learned == list(range(len(example.labels) - len(learned), len(example.labels)))
    assert learned
    assert learned[0] > 0, "nothing would predict it"
    # Every character of the continuation lies in a token that counts.
    spans = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    counted = spans[len(ids) - len(learned) :]
    start = len(whole) - len(continuation.lstrip()) if prompt else 0
    assert counted[0][0] <= start
    assert all(end <= len(prompt) for _, end in spans[: len(ids) - len(learned)])


@given(pairs=st.lists(st.tuples(TEXT, TEXT), max_size=3))
def test_texts_of_any_script_are_split(tokenizer, pairs):
    for example in continuation_examples(tokenizer, pairs):
        assert len(example.input_ids) == len(example.labels)
        assert all(label in (IGNORED, token) for token, label in zip(example.input_ids, example.labels, strict=True))
        if tokenizer is metaspace():
            assert example.input_ids.count(tokenizer.bos_token_id) == 1


def test_a_token_that_spans_the_border_counts_to_the_continuation():
    tokenizer = byte_level()
    (example,) = continuation_examples(tokenizer, [("Ann ", "Lee")])
    assert tokenizer.decode([token for token in example.labels if token != IGNORED]) == " Lee"


def test_the_first_token_follows_the_end_token_where_nothing_else_begins_a_text():
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer)
    ids = tokenizer(CORPUS[0])["input_ids"]
    ((nats, tokens),) = log_probabilities(model, tokenizer, [("", CORPUS[0])], 1)
    assert tokens == len(ids)
    assert nats == pytest.approx(nats_after(model, [tokenizer.eos_token_id], ids), rel=1e-4)
    (example,) = continuation_examples(tokenizer, [("Ann", "Lee")])
    assert tokenizer.eos_token_id not in example.input_ids


def test_perplexity_does_not_depend_on_the_batch_and_weighs_every_token_alike(tokenizer):
    model = tiny_model("llama", tokenizer, scale=0.1)
    alone = [log_probabilities(model, tokenizer, [("", text)], 1)[0] for text in CORPUS[:6]]
    wanted = exp(-sum(nats for nats, _ in alone) / sum(tokens for _, tokens in alone))
    for batch_size in (1, 2, 4, 6):
        together = log_probabilities(model, tokenizer, [("", text) for text in CORPUS[:6]], batch_size)
        assert perplexity_of(together) == pytest.approx(wanted, rel=1e-5)
        assert [tokens for _, tokens in together] == [tokens for _, tokens in alone]


def test_measuring_leaves_the_mode_as_it_was():
    model = tiny_model("gpt2", byte_level())  # with dropout
    wanted = log_probabilities(model, byte_level(), PAIRS, 2)
    model.train()
    assert log_probabilities(model, byte_level(), PAIRS, 2) == wanted
    assert model.training
    assert log_probabilities(model, byte_level(), [], 2) == []


def test_a_tokenizer_without_offsets_is_refused():
    class Slow:
        is_fast, name_or_path = False, "slow"

    with pytest.raises(ModelError, match="slow: a slow tokenizer gives no offsets"):
        continuation_examples(Slow(), PAIRS)
