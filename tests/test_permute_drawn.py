"""Units drawn anew each epoch: `random` words, and tokens that move once they are encoded."""

import copy

import pytest
from fakes import CORPUS, TEXT, byte_level, metaspace
from hypothesis import given
from hypothesis import strategies as st

from spt.config import Permute, Segment
from spt.encode import IGNORED, Encoder, frame_of
from spt.permute import ORDERS, arrange, draw_ordering, generator_for
from spt.records import Segmentation, Tag

ALL = Permute(orders=dict.fromkeys(ORDERS, 1), max_units=10_000)
WORDS = "Ann Lee directed The Sea. Critics of Oslo loved it. They told Ben so."
MOVED = st.sampled_from(sorted(set(ORDERS) - {"original"}))


def words(text=WORDS, name="random", **values):
    cuts = tuple(i for i, letter in enumerate(text) if letter == " ")
    sentences = (0, *(cut for cut in cuts if text[cut - 1] == "."))
    return Segmentation("r", text, cuts if name == "random" else sentences[1:], sentences, name, **values)


@given(order=st.sampled_from(sorted(ORDERS)), seed=st.integers(0, 50), most=st.integers(1, 9))
def test_random_units_are_of_one_to_max_words_and_keep_to_their_sentence(order, seed, most):
    ordering = arrange(words(), order, generator_for(seed, 0, "r"), ALL, Segment(segmenter="random", max_words=most))
    pieces = [piece for piece in ordering.pieces if piece.source is not None]
    starts = sorted(piece.source for piece in pieces if ordering.text[piece.start : piece.end].strip())
    units = [WORDS[start:end] for start, end in zip(starts, [*starts[1:], len(WORDS)], strict=True)]
    assert "".join(units) == WORDS
    for unit in units:
        assert 1 <= len(unit.split()) <= most
        assert "." not in unit.rstrip(". ")
    assert sorted(set(ordering.text.split()) - {*ALL.fim_sentinels}) == sorted(WORDS.split())


def test_random_units_differ_between_epochs_seeds_and_records_and_nowhere_else():
    settings = Segment(segmenter="random", max_words=3)

    def draw(seed=1, epoch=1, name="r"):
        row = words()
        row = Segmentation(name, row.text, row.cuts, row.sentences, row.segmenter)
        return draw_ordering(row, Permute(orders={"reversed": 1}), settings, seed=seed, epoch=epoch)

    assert draw() == draw()
    assert len({draw(**{key: value}).text for key in ("seed", "epoch") for value in range(2, 10)}) > 10
    assert len({draw(name=str(n)).text for n in range(10)}) > 5


def moved(order, seed, text=WORDS, *, settings=ALL, encoder=None, **values):
    ordering = arrange(words(text, "token", **values), order, generator_for(seed, 0, "r"), settings, Segment())
    encoder = encoder or Encoder(byte_level(), max_length=10_000)
    return encoder.encode([ordering])[0]


@given(order=st.sampled_from(sorted(ORDERS)), seed=st.integers(0, 5), text=TEXT.filter(str.strip))
def test_the_ids_of_the_whole_text_move_inside_the_frame(tokenizer, order, seed, text):
    row = Segmentation("r", text, (), (0,), "token")
    ordering = arrange(row, order, generator_for(seed, 0, "r"), ALL, Segment())
    example = Encoder(tokenizer, max_length=10_000).encode([ordering])[0]
    ids, frame = tokenizer(text, add_special_tokens=False)["input_ids"], frame_of(tokenizer)
    inner = list(example.input_ids[len(frame.prefix) : len(example.input_ids) - len(frame.suffix)])
    assert sorted(inner) == sorted(ids)
    assert example.input_ids == (*frame.prefix, *inner, *frame.suffix)
    assert example.labels == (IGNORED,) * len(frame.prefix) + (*inner, *frame.suffix)
    if order == "reversed":
        assert inner == ids[::-1]
    assert example.order == (order if order != "original" and len(ids) > 1 else "original")


def test_long_texts_move_in_windows_of_whole_sentences():
    sentences = [sentence + "." for sentence in WORDS.rstrip(".").split(".")]
    lengths = [len(byte_level()(sentence)["input_ids"]) for sentence in sentences]
    example = moved("reversed", 0, settings=Permute(max_units=max(lengths)))
    expected = [i for sentence in sentences for i in byte_level()(sentence)["input_ids"][::-1]]
    assert list(example.input_ids[:-1]) == expected


@given(order=MOVED, seed=st.integers(0, 5))
def test_a_delimiter_stands_between_tokens_that_did_not_follow_each_other(order, seed):
    plain, marked = moved(order, seed), moved(order, seed, settings=ALL.model_copy(update={"delimiter": "|"}))
    (sign,) = byte_level()("|")["input_ids"]
    assert [i for i in marked.input_ids if i != sign] == list(plain.input_ids)
    count = len(plain.input_ids) - 1
    if order != "shuffled":
        assert marked.input_ids.count(sign) == (count - 1 if order == "reversed" else 1)


@pytest.mark.parametrize("tag", [Tag(token_id=7), Tag(text="moved: ")])
def test_a_tag_stands_before_moved_tokens_only_and_is_not_learned(tag):
    tokenizer = metaspace()
    encoder = Encoder(tokenizer, tag, max_length=10_000)
    ids = [tag.token_id] if tag.token_id else tokenizer(tag.text, add_special_tokens=False)["input_ids"]
    bare, tagged = moved("reversed", 0, encoder=Encoder(tokenizer)), moved("reversed", 0, encoder=encoder)
    assert tagged.input_ids == (bare.input_ids[0], *ids, *bare.input_ids[1:])
    assert tagged.labels == (IGNORED, *[IGNORED] * len(ids), *bare.labels[1:])
    assert moved("original", 0, encoder=encoder) == moved("original", 0, encoder=Encoder(tokenizer))


@given(order=MOVED, seed=st.integers(0, 5))
def test_the_loss_on_completions_follows_the_tokens(order, seed):
    encoder = Encoder(byte_level(), max_length=10_000, loss_on="completion")
    marked = ALL.model_copy(update={"delimiter": "|"})
    text = "ab abc q NOP Q N"
    example = moved(order, seed, text, settings=marked, encoder=encoder, completion_start=text.index("NOP"))
    for token, label in list(zip(example.input_ids, example.labels, strict=True))[:-1]:
        letters = byte_level().decode([token]).strip()
        assert (label != IGNORED) == letters.isupper() or not letters


def test_moved_tokens_are_cut_at_the_limit_or_rejected():
    short = Encoder(byte_level(), max_length=9)
    assert moved("reversed", 0, encoder=short).input_ids == moved("reversed", 0).input_ids[:9]
    assert short.counts == {"too_long_truncate": 1}
    ordering = arrange(words(name="token"), "reversed", generator_for(0, 0, "r"), ALL, Segment())
    assert Encoder(byte_level(), max_length=9, too_long="reject").encode([ordering]) == []


def test_a_delimiter_that_is_a_token_counts_only_where_the_text_itself_spells_it():
    tokenizer = copy.deepcopy(byte_level())
    tokenizer.add_tokens(["<cut>"])
    settings = ALL.model_copy(update={"delimiter": "<cut>"})
    encoder = Encoder(tokenizer)
    for text, count in ((WORDS, 0), (f"{WORDS} Here is <cut> itself.", 1)):
        moved("reversed", 0, text, settings=settings, encoder=encoder)
        assert encoder.counts["special_tokens_in_text"] == count


def test_moved_tokens_and_whole_texts_go_together_in_one_batch():
    encoder = Encoder(byte_level())
    rows = [words(CORPUS[0], name) for name in ("token", "random")]
    orderings = [arrange(row, "reversed", generator_for(0, 0, "r"), ALL, Segment()) for row in rows]
    assert encoder.encode(orderings) == [encoder.encode([ordering])[0] for ordering in orderings]
