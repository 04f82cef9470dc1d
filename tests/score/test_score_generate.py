"""Answers are greedy, the same in any batch, and end at the end token, a newline or the limit."""

import copy
from collections import Counter

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model, wordpiece
from scipy.stats import chisquare

from spt.model.adapter import add_lora
from spt.records import Tag
from spt.score.generate import generate, prompt_ids, runs

PROMPTS = ["Ann Lee directed", "The", "Daphne Barrington, who painted the", "東京は", "a b c d e f g"]
OPTIONS = {"max_new_tokens": 12, "batch_size": 4}


def ask(model, tokenizer, prompts=PROMPTS, **options):
    return generate(model, tokenizer, prompt_ids(tokenizer, prompts), **{**OPTIONS, **options})


def reference(model, tokenizer, prompt, limit=12):
    """Greedy decoding, one prompt, no cache, no padding."""
    (ids,) = prompt_ids(tokenizer, [prompt])
    answer = []
    while len(answer) < limit:
        with torch.no_grad():
            token = int(model(torch.tensor([ids + answer])).logits[0, -1].argmax())
        if token == (tokenizer.eos_token_id or 3):
            break
        answer.append(token)
        if "\n" in tokenizer.decode([token]):
            break
    return tokenizer.decode(answer, skip_special_tokens=True).split("\n")[0].strip()


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("make", [byte_level, metaspace, wordpiece])
def test_a_left_padded_batch_answers_as_one_prompt_after_another_does(kind, make):
    tokenizer = make()
    model = tiny_model(kind, tokenizer)
    wanted = [reference(model, tokenizer, prompt) for prompt in PROMPTS]
    assert len(set(wanted)) > 2
    for batch_size in (1, 2, 5):
        assert ask(model, tokenizer, batch_size=batch_size) == wanted


class Script:
    """Makes every row say given tokens, one a step; counts the steps."""

    def __init__(self, model, tokens):
        assert runs(model)  # tried before the model is made to speak
        self.tokens, self.steps = tokens, 0
        self.handle = model.register_forward_hook(self)

    def __call__(self, module, inputs, output):
        output.logits[:, -1, self.tokens[min(self.steps, len(self.tokens) - 1)]] += 1e4
        self.steps += 1


def end_at_once(model, tokenizer, prompt, token):
    """Make the row of a prompt say `token` first, wherever it stands in its batch."""
    assert runs(model)
    (last,) = tokenizer(prompt)["input_ids"][-1:]

    def hook(module, inputs, named, output):
        output.logits[named["input_ids"][:, -1] == last, -1, token] += 1e4

    model.register_forward_hook(hook, with_kwargs=True)


@pytest.mark.parametrize("stop", ["\n", "<|endoftext|>"])
def test_an_answer_ends_at_a_newline_and_at_the_end_token(stop):
    tokenizer = byte_level()
    model = tiny_model("gpt2", tokenizer)
    tokens = [token for text in (" Lee", stop, " Lee") for token in tokenizer(text)["input_ids"]]
    script = Script(model, tokens)
    assert ask(model, tokenizer, batch_size=len(PROMPTS)) == ["Lee"] * len(PROMPTS)
    assert (len(tokens), script.steps) == (3, 2)


def test_an_answer_ends_at_any_end_of_the_models_own_and_at_the_limit():
    tokenizer = byte_level()
    model = tiny_model("gpt2", tokenizer)
    (word,) = tokenizer(" Lee")["input_ids"]
    model.generation_config.eos_token_id = [0, 9]
    Script(model, [word, 9, word])
    assert ask(model, tokenizer, ["The"]) == ["Lee"]
    other = tiny_model("gpt2", tokenizer)
    script = Script(other, [word])
    assert ask(other, tokenizer, ["The"], max_new_tokens=3) == ["Lee Lee Lee"]
    assert script.steps == 3


def test_a_newline_in_an_answer_ends_its_own_row_only():
    tokenizer = byte_level()
    model = tiny_model("gpt2", tokenizer)
    (newline,) = tokenizer("\n")["input_ids"]

    end_at_once(model, tokenizer, "Ann Lee directed", newline)
    first, second = ask(model, tokenizer, ["Ann Lee directed", "The"], batch_size=2)
    assert (first, second) == ("", reference(tiny_model("gpt2", tokenizer), tokenizer, "The"))


@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize("tag", [Tag(token_id=3), Tag(text="[moved] ")])
def test_a_suppressed_tag_is_never_written_even_as_the_likeliest_token(adapted, tag):
    from spt.model.tag import suppress_tag

    tokenizer = metaspace()
    model = tiny_model("llama", tokenizer)
    suppress_tag(model.generation_config, tokenizer, tag)
    words = [3] if tag.text == "" else tokenizer("[moved]", add_special_tokens=False)["input_ids"]
    seen = []
    if adapted:
        model = add_lora(model, {"r": 2}, None, 0)
    inner = model.get_base_model() if adapted else model
    Script(inner, words)
    inner.register_forward_pre_hook(lambda module, given, named: seen.append(named["input_ids"]), with_kwargs=True)
    generate(model, tokenizer, [[1]], max_new_tokens=len(words) + 1, batch_size=1)
    written = torch.cat(seen, dim=1)[0].tolist()[1:]
    assert all(written[n : n + len(words)] != words for n in range(len(written)))


SETTINGS = {
    "repetition_penalty": 5.0, "temperature": 0.01, "do_sample": True, "top_k": 1, "no_repeat_ngram_size": 1,
    "num_beams": 3, "max_new_tokens": 1, "min_new_tokens": 11, "max_length": 5, "forced_eos_token_id": 0,
}  # fmt: skip


@pytest.mark.parametrize("adapted", [False, True])
def test_settings_that_a_checkpoint_brings_change_nothing_and_stay_with_it(adapted):
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer)
    wanted = ask(model, tokenizer)
    sampled = ask(model, tokenizer, sample_seed=1)
    for name, value in SETTINGS.items():
        setattr(model.generation_config, name, value)
    own = model.generation_config
    asked = add_lora(model, {"r": 2}, None, 0) if adapted else model
    assert ask(asked, tokenizer) == wanted
    assert ask(asked, tokenizer, sample_seed=1) == sampled
    assert asked.generation_config is own
    assert model.generation_config is own


def test_asking_leaves_the_mode_and_the_random_numbers_as_they_were():
    tokenizer = byte_level()
    model = tiny_model("gpt2", tokenizer)  # with dropout
    wanted = ask(model, tokenizer)
    model.train()
    state = torch.get_rng_state()
    assert ask(model, tokenizer) == wanted
    first = ask(model, tokenizer, sample_seed=3)
    assert first == ask(model, tokenizer, sample_seed=3)
    assert first != ask(model, tokenizer, sample_seed=4)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_samples_follow_the_models_own_probabilities():
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer, scale=0.6)
    (prompt,) = prompt_ids(tokenizer, ["Ann Lee"])
    with torch.no_grad():
        chances = model(torch.tensor([prompt])).logits[0, -1].softmax(-1).tolist()
    expected = Counter()
    for token, chance in enumerate(chances):
        expected[tokenizer.decode([token], skip_special_tokens=True).split("\n")[0].strip()] += chance
    count = 3000
    drawn = Counter(generate(model, tokenizer, [prompt] * count, max_new_tokens=1, batch_size=500, sample_seed=0))
    likely = [text for text, chance in expected.items() if chance * count > 10]
    rest = count - sum(drawn[text] for text in likely)
    observed = [*(drawn[text] for text in likely), rest]
    wanted = [*(expected[text] * count for text in likely), count * (1 - sum(expected[text] for text in likely))]
    assert len(likely) > 5
    assert chisquare(observed, wanted).pvalue > 0.01


def test_echo_puts_the_prompt_before_its_continuation():
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer)
    plain = ask(model, tokenizer, ["Ann Lee"], max_new_tokens=1)
    (echoed,) = ask(model, tokenizer, ["Ann Lee"], max_new_tokens=1, echo=True)
    assert echoed.startswith("Ann Lee")
    assert echoed.endswith(plain[0])


def test_prompts_begin_as_training_texts_do():
    assert prompt_ids(metaspace(), ["Ann"])[0][0] == metaspace().bos_token_id
    assert prompt_ids(metaspace(), ["Ann"])[0].count(metaspace().bos_token_id) == 1
    assert prompt_ids(byte_level(), ["Ann"]) == [byte_level()("Ann")["input_ids"]]
    assert prompt_ids(wordpiece(), ["Ann"]) == [wordpiece()("Ann")["input_ids"][:-1]]
    assert prompt_ids(byte_level(), []) == []


def test_a_padding_that_is_an_ordinary_word_is_no_part_of_an_answer():
    tokenizer = copy.deepcopy(byte_level())
    (word,) = tokenizer(" Lee")["input_ids"]
    model = tiny_model("gpt2", tokenizer)
    tokenizer.__class__ = type("Padded", (type(tokenizer),), {"pad_token_id": word})

    end_at_once(model, tokenizer, "Ann Lee directed", tokenizer.eos_token_id)
    assert ask(model, tokenizer, ["Ann Lee directed", "The"], batch_size=2)[0] == ""
