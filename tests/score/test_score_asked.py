"""A prompt is read as the trainer would have written it, or as a user's turn, with one beginning token."""

import copy

import pytest
import torch
from experiment import write_experiment
from fakes import CORPUS, byte_level, metaspace, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from spt.benchmark.questions import read_questions
from spt.config import Evaluate, read_config
from spt.encode import IGNORED, Encoder
from spt.errors import ModelError
from spt.records import Ordering, Piece, join_texts
from spt.score import LocalAsked
from spt.score.asked import framed
from spt.score.generate import prompt_ids
from spt.score.likelihood import continuation_examples
from spt.score.reads import reads_first

CHATML = (
    "{{ bos_token or '' }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)


def chatting(make, template=CHATML):
    tokenizer = copy.deepcopy(make())
    tokenizer.chat_template = template
    return tokenizer


@given(text=st.sampled_from(CORPUS), data=st.data())
def test_prompt_and_target_have_the_tokens_that_the_trainer_sees(tokenizer, text, data):
    cut = data.draw(st.integers(1, len(text) - 1))
    prompt, target = text[:cut].rstrip(), text[cut:]
    whole = join_texts(prompt, target)
    (example,) = continuation_examples(tokenizer, [(prompt, target)])
    encoder = Encoder(tokenizer)
    (trained,) = encoder.encode([Ordering("a", "original", (0,), whole, (Piece(0, len(whole), 0),))])
    seen = trained.input_ids[: -len(encoder.frame.suffix)]
    assert example.input_ids[-len(seen) :] == seen
    if before := example.input_ids[: -len(seen)]:
        # The tokenizer begins no text, and its first token is to be predicted: the end token stands before it.
        assert (before, encoder.frame.prefix) == (encoder.frame.suffix[-1:], ())
        assert example.labels[1] != IGNORED
    (asked,) = prompt_ids(tokenizer, [prompt])
    (alone,) = encoder.encode([Ordering("a", "original", (0,), prompt, (Piece(0, len(prompt), 0),))])
    assert tuple(asked) == alone.input_ids[: -len(encoder.frame.suffix)]


@pytest.mark.parametrize("make", [byte_level, metaspace])
def test_a_chat_prompt_is_the_template_with_one_beginning_token(make):
    tokenizer = chatting(make)
    model = tiny_model("llama", tokenizer)
    asked = LocalAsked(model, tokenizer, Evaluate(chat_template=True))
    prompt = asked.framed("Who is Ann?")
    (ids,) = prompt_ids(tokenizer, [prompt])
    wanted = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Who is Ann?"}], add_generation_prompt=True, return_dict=False
    )
    assert ids == wanted
    if tokenizer.bos_token_id is not None:
        assert ids.count(tokenizer.bos_token_id) == 1
    (found,) = asked.log_probabilities([("Who is Ann?", ["Lee", "abc"])])
    for target, (nats, tokens) in zip(("Lee", "abc"), found, strict=True):
        prefix = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        whole = prefix + tokenizer(prompt + target, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([whole])).logits[0].log_softmax(-1)
        own = range(len(whole) - tokens, len(whole))
        assert nats == pytest.approx(sum(logits[place - 1, whole[place]].item() for place in own), rel=1e-4)
        assert "".join(tokenizer.decode(whole[-tokens:]).split()) == target
    assert asked.generate(["Who is Ann?"], max_new_tokens=3) != []


def test_a_template_that_is_missing_or_refuses_is_named():
    model = tiny_model("llama", byte_level())
    with pytest.raises(ModelError, match="has no chat template"):
        LocalAsked(model, byte_level(), Evaluate(chat_template=True))
    refusing = chatting(byte_level, "{{ raise_exception('no users') }}")
    asked = LocalAsked(model, refusing, Evaluate(chat_template=True))
    with pytest.raises(ModelError, match="refuses a user's turn"):
        asked.generate(["Who is Ann?"], max_new_tokens=3)


@pytest.mark.parametrize("chat", [False, True])
def test_a_dry_run_shows_the_tokens_that_the_model_will_read(tmp_path, chat):
    tokenizer = chatting(byte_level)
    for part in (tokenizer, tiny_model("llama", tokenizer).config):
        part.save_pretrained(tmp_path / "model")
    settings = {"base": str(tmp_path / "model"), "from_scratch": None}
    path = write_experiment(tmp_path, model=settings, evaluate={"chat_template": chat})
    config = read_config(path)
    prompt = read_questions(config.data.questions).questions[0].prompt
    (ids,) = prompt_ids(tokenizer, [framed(tokenizer, prompt, chat_template=chat)])
    how, tokens = reads_first(config).split(" tokens: ")
    assert how == f"the first prompt {'in the chat template' if chat else 'as plain text'}, {len(ids)}"
    assert tokens.count("·") == len(ids) - 1
    assert tokens.replace("·", "").replace("\\n", "\n") == tokenizer.decode(ids)
    from_scratch = write_experiment(tmp_path / "scratch", evaluate={"chat_template": chat})
    assert reads_first(read_config(from_scratch)) is None
    byte_level().save_pretrained(tmp_path / "plain")
    if chat:
        with pytest.raises(ModelError, match="has no chat template"):
            reads_first(config, str(tmp_path / "plain"))
