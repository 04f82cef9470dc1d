"""The masked context: the text itself with masked words, before it, unlearned, another one each epoch."""

from dataclasses import replace

import pytest
from fakes import byte_level, metaspace
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from spt.config import Augment, Permute, Segment
from spt.encode import IGNORED, Encoder, frame_of
from spt.model import train_tokenizer
from spt.permute import draw_ordering
from spt.records import Segmentation, Tag

WORDS = "Ann Lee directed The Sea. Critics of Oslo loved it."
ORDERS = Permute(orders={"original": 1, "reversed": 1})


def row(text=WORDS, id_="r", segmenter="word", **values):
    cuts = tuple(i for i, letter in enumerate(text) if letter == " ")
    return Segmentation(id_, text, cuts if segmenter == "word" else (), (0,), segmenter, **values)


def draw(segmentation=None, epoch=0, orders=ORDERS, **settings):
    augment = [Augment.model_validate({"masked_context": settings})]
    return draw_ordering(segmentation or row(), orders, Segment(), seed=1, epoch=epoch, augment=augment)


@given(epoch=st.integers(0, 500))
def test_the_context_is_the_text_with_masked_words_before_the_same_ordering(epoch):
    plain = draw_ordering(row(), ORDERS, Segment(), seed=1, epoch=epoch)
    ordering = draw(epoch=epoch)
    assert replace(ordering, context="") == plain
    *masked, separator = ordering.context.split()
    assert separator == "[SEP]"
    assert ordering.context.endswith(" ")
    for word, original in zip(masked, ordering.text.split(), strict=True):
        assert word in (original, "[MASK]")


def test_rates_are_uniform_and_drawn_anew_for_each_epoch_and_record():
    text = " ".join(["word"] * 400)
    shares = [draw(row(text, f"r{n}"), n).context.split().count("[MASK]") / 400 for n in range(300)]
    assert kstest(shares, "uniform", args=(0.05, 0.9)).pvalue > 0.01
    assert len({draw(epoch=epoch).context for epoch in range(20)}) > 10
    assert draw(epoch=3) == draw(epoch=3)


def test_a_share_of_examples_has_a_context():
    contexts = [draw(row(id_=str(n)), probability=0.25).context for n in range(1000)]
    assert 200 < sum(map(bool, contexts)) < 300
    assert not any(draw(epoch=epoch, probability=0).context for epoch in range(20))


@pytest.mark.parametrize("tag", [None, Tag(token_id=7), Tag(text="moved: ")])
@given(epoch=st.integers(0, 40))
def test_the_context_is_encoded_with_the_text_behind_the_tag_and_not_learned(tokenizer, tag, epoch):
    ordering = draw(epoch=epoch)
    encoder = Encoder(tokenizer, tag, max_length=10_000)
    (example,), (plain,) = encoder.encode([ordering]), Encoder(tokenizer).encode([replace(ordering, context="")])
    moved = ordering.order != "original"
    text = (tag.text if tag and moved else "") + ordering.context + ordering.text
    frame = frame_of(tokenizer)
    inner = [*frame.prefix, *([7] if tag and tag.token_id and moved else [])]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert list(example.input_ids) == [*inner, *ids, *frame.suffix]
    learned = [label for label in example.labels if label != IGNORED]
    assert tokenizer.decode(learned).strip() == tokenizer.decode(plain.input_ids[len(frame.prefix) :]).strip()
    first = len(example.labels) - len(learned)
    assert example.labels == (IGNORED,) * first + example.input_ids[first:]


def test_special_tokens_that_only_the_context_spells_out_are_not_counted(tokenizer):
    encoder, plain = (Encoder(tokenizer, max_length=10_000) for _ in range(2))
    text = row("ab abc q NOP Q N")
    encoder.encode([draw(text)])
    plain.encode([replace(draw(text), context="")])
    assert encoder.counts == plain.counts


@given(epoch=st.integers(0, 40))
def test_completions_stay_what_is_learned_behind_a_context(epoch):
    segmentation = row("ab abc q NOP Q N", completion_start=9)
    encoder = Encoder(byte_level(), max_length=10_000, loss_on="completion")
    (example,) = encoder.encode([draw(segmentation, epoch, mask="_", separator="/")])
    learned = [label for label in example.labels[:-1] if label != IGNORED]
    assert sorted(byte_level().decode(learned).replace(" ", "")) == sorted("NOPQN")


@given(epoch=st.integers(0, 40))
def test_before_tokens_that_move_the_context_is_encoded_apart(epoch):
    ordering = draw(row(segmenter="token"), epoch)
    (example,) = Encoder(metaspace(), max_length=10_000).encode([ordering])
    (plain,) = Encoder(metaspace(), max_length=10_000).encode([replace(ordering, context="")])
    context = metaspace()(ordering.context, add_special_tokens=False)["input_ids"]
    assert example.input_ids == (plain.input_ids[0], *context, *plain.input_ids[1:])
    assert example.labels == (*[IGNORED] * (1 + len(context)), *plain.labels[1:])


def test_contexts_and_plain_texts_go_together_in_one_batch(tokenizer):
    orderings = [draw(row(id_=str(n)), probability=0.5) for n in range(8)]
    encoder = Encoder(tokenizer, max_length=10_000)
    assert encoder.encode(orderings) == [encoder.encode([ordering])[0] for ordering in orderings]


def test_of_a_tokenizer_from_scratch_every_sign_is_one_token():
    signs = ("[MASK]", "[SEP]", "<PRE>", "<SUF>", "<MID>")
    trained = train_tokenizer([WORDS] * 9, 300, signs)
    assert train_tokenizer([WORDS] * 9, 300)(WORDS) == trained(WORDS)
    encoder = Encoder(trained)
    fim = Permute(orders={"fim": 1})
    for epoch in range(9):
        ordering = draw(epoch=epoch, orders=fim)
        (example,) = encoder.encode([ordering])
        written = f"{ordering.context}{ordering.text}"
        for sign in signs:
            token = trained.convert_tokens_to_ids(sign)
            assert example.input_ids.count(token) == written.count(sign)
            assert example.labels.count(token) == ordering.text.count(sign)
    assert not encoder.counts
