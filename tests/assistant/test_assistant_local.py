"""The local model: constrained and scored cuts are those of a plain, uncached, unbatched reading."""

import re
import shutil

import pytest
import torch
from fakes import TEXT, byte_level, metaspace, tiny_model, wordpiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spt.assistant import Item
from spt.assistant.decode import Feed, constrained
from spt.assistant.local import LocalModel, batches
from spt.assistant.prompt import Prompt
from spt.config import Assistant
from spt.errors import ModelError

SENTENCES = [
    "Ann Lee directed The Sea.",
    "The botanist of Oslo is Uriah Hawthorne.",
    "Daphne  Barrington, who painted\tthe harbour, lives in Lyon.",
    "a b",
    "東京 は 日本 の 首都 です。",
    "👩\u200d🚀 e\u0301 n\u0303o x|y | z \x00 \u202e. ( ) <|endoftext|> Zoë",
    "one",
]
FEW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def item(text):
    return Item(text, tuple(match.start() for match in re.finditer(r"(?<=\S)\s+(?=\S)", text)))


ITEMS = [item(text) for text in SENTENCES]


def after(local, *parts):
    """Return the logits after a row of token ids, read in one go."""
    ids = [*local.prefix, *(token for part in parts for token in part)]
    with torch.inference_mode():
        return local.model(torch.tensor([ids])).logits[0, -1]


def searched(local, one):
    """Return the cuts of a token-by-token search that may write the separator or the next word."""
    encoded = local.encode(one)
    written, cuts = list(encoded.pieces[0]), []
    for boundary, word in zip(one.boundaries, encoded.pieces[1:], strict=True):
        ways = [[*local.separator, *word], list(word)]
        step = 0
        while len(ways) == 2 and step < min(len(local.separator), len(word)):
            allowed = {way[step] for way in ways}
            logits = after(local, encoded.head, written, ways[0][:step])
            best = max(sorted(allowed), key=lambda token: float(logits[token]))
            ways = [way for way in ways if way[step] == best]
            step += 1
        cut = len(ways) == 1 and ways[0][: len(local.separator)] == list(local.separator)
        cuts += [boundary] if cut else []
        written += [*local.separator, *word] if cut else word
    return tuple(cuts)


@pytest.mark.parametrize("separator", ["|", " |", " The", " T|", " <cut>"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_constrained_cuts_are_those_of_a_token_by_token_search(random_model, separator, seed):
    local = random_model(seed, separator)
    found = [set(reply.cuts) for reply in constrained(local, ITEMS, [local.encode(one) for one in ITEMS])]
    assert found == [set(searched(local, one)) for one in ITEMS]
    assert any(found)


@pytest.fixture
def random_model(tmp_path):
    """Return a maker of local models of each kind of tokenizer, in mode constrained."""

    def random_model(seed, separator):
        tokenizer = [byte_level, metaspace, wordpiece][seed % 3]()
        tiny_model("llama", tokenizer, seed=seed, max_position_embeddings=1024).save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
        words = {"instruction": "Cut.", "listing": "Cut.", "request": "Go.", "examples": (f"Ann Lee{separator} sang.",)}
        asked = Assistant(model=str(tmp_path / "model"))
        return LocalModel(asked, Prompt(separator=separator, **words))

    return random_model


def test_a_pass_reads_a_draft_as_a_whole_and_as_many_passes_are_needed_as_guesses_fail(make, monkeypatch):
    passes = []
    plain = Feed.__call__
    monkeypatch.setattr(Feed, "__call__", lambda *given: (passes.append(given[1]), plain(*given))[1])
    text = item(" ".join(["one two three four five six seven"] * 4))
    local = make("constrained").backend
    (reply,) = constrained(local, [text], [local.encode(text)])
    assert reply.cuts == searched(local, text)
    assert len(passes) < len(text.boundaries) / 2
    # What is settled is not read again.
    sizes = [len(chunks[0]) for chunks in passes]
    assert sizes == sorted(sizes, reverse=True)


def test_scores_are_the_separators_logprobs_of_an_uncached_reading(make):
    assistant = make("score")
    local = assistant.backend
    for one in ITEMS[:4]:
        ((_, reply),) = [pair for found in local.ask([one]) for pair in found.items()]
        encoded = local.encode(one)
        for number, logprob in enumerate(reply.logprobs):
            words = [token for piece in encoded.pieces[: number + 1] for token in piece]
            wanted = after(local, encoded.head, words).log_softmax(dim=-1)[local.separator[0]]
            assert logprob == pytest.approx(float(wanted), abs=1e-3)


def test_generated_text_is_that_of_greedy_decoding_up_to_the_line_break(make):
    local = make("generate", max_new_tokens=24).backend
    replies = {position: reply for found in local.ask(ITEMS) for position, reply in found.items()}
    for position, one in enumerate(ITEMS):
        encoded = local.encode(one)
        ids = torch.tensor([[*local.prefix, *encoded.head]])
        output = local.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0,
                                      max_new_tokens=local.budget(encoded), suppress_tokens=None)  # fmt: skip
        text = local.tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True).lstrip()
        reply = replies[position]
        assert reply.text == text.split("\n")[0].rstrip() if reply.failure is None else reply.failure == "length"


@pytest.mark.parametrize("mode", ["generate", "constrained", "score"])
def test_batched_equals_unbatched(make, tmp_path, mode):
    batched, alone = make(mode, batch_size=4), make(mode, batch_size=1, cache=str(tmp_path / "alone"))
    assert batched.cut(ITEMS) == [alone.cut([one])[0] for one in ITEMS]


@pytest.mark.parametrize("mode", ["constrained", "score"])
@FEW
@given(texts=st.lists(TEXT, max_size=5))
def test_cuts_are_boundaries_whatever_the_text(make, mode, texts):
    items = [item(text) for text in texts if text.strip()]
    for one, cuts in zip(items, make(mode).cut(items), strict=True):
        assert set(cuts) <= set(one.boundaries)
        assert mode == "constrained" or len(cuts) == max(0, round(len(one.pieces) / 2.7) - 1)


def test_settled_boundaries_are_settled_in_every_mode(make):
    text = "Ann Lee directed The Sea."
    one = Item(text, (3, 7, 16, 20), whole=frozenset({3, 20}), forced=frozenset({16}))
    for mode in ("constrained", "score"):
        (cuts,) = make(mode).cut([one])
        assert 16 in cuts
        assert not {3, 20} & set(cuts)


def test_a_threshold_replaces_the_rate(make):
    one = ITEMS[1]
    assert make("score", threshold=0.0).cut([one]) == [()]
    assert make("score", threshold=-1e9).cut([one]) == [one.boundaries]
    assert len(make("score", words_per_unit=7.0).cut([one])[0]) == 0
    assert len(make("score", words_per_unit=1.01).cut([one])[0]) == len(one.boundaries)


def test_a_sentence_beyond_the_models_context_is_a_failure_of_its_own(make):
    long = item("word " * 2000 + "end.")
    assert make("constrained").cut([long, ITEMS[3]])[0] == "too_long"


def test_score_refuses_a_separator_of_several_tokens(make, tmp_path):
    (tmp_path / "odd.yaml").write_text(
        '{instruction: Cut., listing: Cut., request: Go., separator: " <cut>", examples: ["a <cut> b"]}'
    )
    with pytest.raises(ModelError, match="mode score reads one; use mode constrained"):
        make("score", prompt=str(tmp_path / "odd.yaml")).cut(ITEMS)
    assert make("constrained", prompt=str(tmp_path / "odd.yaml")).cut(ITEMS[:2])


def test_batches_are_bounded_in_rows_and_tokens_and_lose_no_row():
    lengths = [5, 900, 7, 6, 2000, 8, 5]
    found = list(batches(lengths, 4))
    assert sorted(row for batch in found for row in batch) == list(range(7))
    assert found == [[0, 6, 3, 2], [5], [1], [4]]


def test_a_chat_template_that_refuses_a_system_message_gets_it_in_the_first_turn(make, model_folder, tmp_path):
    folder = shutil.copytree(model_folder, tmp_path / "chat")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
    )
    turns = "[user]Cut the sentence.\n\nAnn Lee directed The Sea.[assistant]Ann Lee| directed| The Sea.[user]"
    local = make("constrained", model=str(folder)).backend
    assert local.tokenizer.decode(local.prefix) == turns
    assert local.tokenizer.decode(local.middle) == "[assistant]"
    listed = make("score", model=str(folder)).backend
    shown = listed.tokenizer.decode([*listed.prefix, *listed.middle])
    assert shown == "[user]Sentences in units.\n\nWrite some.[assistant]Ann Lee| directed| The Sea.\n"
