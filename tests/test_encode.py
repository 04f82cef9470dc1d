"""What is learned is the encoding of the permuted text as a whole, framed as the tokenizer frames it."""

import unicodedata
from types import SimpleNamespace

import pytest
from fakes import CORPUS, TEXT, byte_level, metaspace, wordpiece
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from spt.encode import IGNORED, Encoder, Frame, frame_of
from spt.errors import ModelError
from spt.permute import ORDERS, generator_for, permute
from spt.records import Ordering, Piece, Segmentation, Tag

ORDER = st.sampled_from(sorted(ORDERS))


def whole(text, order="original", completion_start=None):
    pieces = (Piece(0, len(text), 0),) if text else ()
    return Ordering("r", order, (0,), text, pieces, completion_start)


def framed(tokenizer, text):
    """What the tokenizer itself makes of a text, with the end token that it may leave out."""
    ids = tokenizer(text)["input_ids"]
    return ids if tokenizer.sep_token else [*ids, tokenizer.eos_token_id]


@given(parts=st.lists(TEXT.filter(bool), min_size=1, max_size=5), order=ORDER, seed=st.integers(0, 3))
def test_ids_are_those_of_the_whole_permuted_text(tokenizer, parts, order, seed):
    cuts = tuple(len("".join(parts[:n])) for n in range(1, len(parts)))
    segmentation = Segmentation("r", "".join(parts), cuts, (0,), "test")
    ordering = permute(segmentation, order, generator_for(seed, 0, "r"))
    (example,) = Encoder(tokenizer, max_length=10_000).encode([ordering])
    assert list(example.input_ids) == framed(tokenizer, ordering.text)
    prefix = len(frame_of(tokenizer).prefix)
    assert example.labels == (IGNORED,) * prefix + example.input_ids[prefix:]


@given(texts=st.lists(TEXT, max_size=4))
def test_encoding_together_or_alone_is_the_same(tokenizer, texts):
    encoder = Encoder(tokenizer)
    orderings = [whole(text) for text in texts]
    assert encoder.encode(orderings) == [example for ordering in orderings for example in encoder.encode([ordering])]


def test_a_beginning_stands_once_where_the_tokenizer_adds_it_and_never_elsewhere():
    (example,) = Encoder(metaspace()).encode([whole("Ann Lee")])
    assert example.input_ids[0] == metaspace().bos_token_id
    assert example.input_ids.count(metaspace().bos_token_id) == 1
    (example,) = Encoder(byte_level()).encode([whole("Ann Lee")])
    assert list(example.input_ids[:-1]) == byte_level()("Ann Lee")["input_ids"]


def test_the_end_is_learned_even_where_it_pads():
    assert metaspace().pad_token_id == metaspace().eos_token_id
    (example,) = Encoder(metaspace()).encode([whole("Ann Lee")])
    assert example.labels[-1] == example.input_ids[-1] == metaspace().eos_token_id


def test_a_tokenizer_that_cannot_end_a_text_is_refused():
    bare = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(ModelError, match="no end token"):
        frame_of(PreTrainedTokenizerFast(tokenizer_object=bare, unk_token="[UNK]"))


def test_a_tag_stands_before_moved_text_only_and_is_not_learned(tokenizer):
    token = 7
    tagged = Encoder(tokenizer, Tag(token_id=token))
    plain = Encoder(tokenizer)
    orderings = [whole("Ann Lee directed"), whole("directed Ann Lee", "rotated")]
    original, moved = tagged.encode(orderings)
    assert original == plain.encode(orderings)[0]
    (bare,) = plain.encode(orderings[1:])
    at = len(frame_of(tokenizer).prefix)
    assert moved.input_ids == (*bare.input_ids[:at], token, *bare.input_ids[at:])
    assert moved.labels == (*bare.labels[:at], IGNORED, *bare.labels[at:])


def test_a_tag_of_plain_text_is_encoded_with_the_text_and_not_learned(tokenizer):
    encoder = Encoder(tokenizer, Tag(text="NOP: "))
    original, moved = encoder.encode([whole("Ann Lee"), whole("Lee Ann", "reversed")])
    assert original == Encoder(tokenizer).encode([whole("Ann Lee")])[0]
    assert list(moved.input_ids) == framed(tokenizer, "NOP: Lee Ann")
    learned = [token for token in moved.labels if token != IGNORED]
    assert tokenizer.decode(learned, skip_special_tokens=True).strip().lower() == "lee ann"
    assert learned[-1] == moved.input_ids[-1]


def test_text_that_is_too_long_loses_its_end_or_goes_and_is_counted(tokenizer):
    long, short = whole("Ann Lee directed The Sea. " * 9, "rotated"), whole("Ann")
    cut = Encoder(tokenizer, Tag(token_id=7), max_length=20)
    examples = cut.encode([long, short])
    assert [len(example.input_ids) for example in examples] == [20, len(framed(tokenizer, "Ann"))]
    assert len(examples[0].labels) == 20
    assert frame_of(tokenizer).suffix[-1] not in examples[0].input_ids[1:]
    assert cut.counts == {"too_long_truncate": 1}
    reject = Encoder(tokenizer, max_length=20, too_long="reject")
    assert reject.encode([long, short]) == examples[1:]
    assert reject.counts == {"too_long_reject": 1}


@given(extra=st.integers(-2, 2))
def test_a_text_that_just_fits_keeps_its_end(tokenizer, extra):
    ids = framed(tokenizer, CORPUS[0])
    (example,) = Encoder(tokenizer, max_length=len(ids) + extra).encode([whole(CORPUS[0])])
    assert list(example.input_ids) == (
        ids if extra >= 0 else ids[: -len(frame_of(tokenizer).suffix)][: len(ids) + extra]
    )


def test_an_end_of_two_tokens_is_cut_off_whole():
    encoder = Encoder(wordpiece(), max_length=len(wordpiece()(CORPUS[0])["input_ids"]))
    encoder.frame = Frame(encoder.frame.prefix, (3, 2))
    (example,) = encoder.encode([whole(CORPUS[0])])
    assert list(example.input_ids) == wordpiece()(CORPUS[0])["input_ids"][:-1]


# Prompt words are in small letters, completion words in capitals: a token shows where it came from.
PROMPT = st.lists(st.sampled_from(["ab", "abc", "q"]), min_size=1, max_size=4)
COMPLETION = st.lists(st.sampled_from(["NOP", "N", "Q"]), min_size=1, max_size=4)


@given(prompt=PROMPT, completion=COMPLETION, glue=st.sampled_from(["", " "]), order=ORDER, seed=st.integers(0, 5))
def test_the_loss_on_completions_follows_the_characters_through_every_order(prompt, completion, glue, order, seed):
    tokenizer = byte_level()
    middle = prompt[-1] + glue + completion[0]
    words = [*(f"{word} " for word in prompt[:-1]), middle, *(f" {word}" for word in completion[1:])]
    start = len(" ".join(prompt) + glue)
    cuts = tuple(len("".join(words[:n])) for n in range(1, len(words)))
    segmentation = Segmentation("r", "".join(words), cuts, (0,), "test", completion_start=start)
    encoder = Encoder(tokenizer, Tag(token_id=7), loss_on="completion")
    ordering = permute(segmentation, order, generator_for(seed, 0, "r"), delimiter="|", sentinels=("<p>", "<s>", "<m>"))
    (example,) = encoder.encode([ordering])
    spans = False
    for token, label in list(zip(example.input_ids, example.labels, strict=True))[:-1]:
        letters = tokenizer.decode([token])
        if letters.strip():
            assert (label != IGNORED) == letters[-1].isupper()
        spans |= any(map(str.islower, letters)) and any(map(str.isupper, letters))
    assert not spans or encoder.counts["token_spans_prompt_and_completion"] == 1
    assert example.labels[-1] == tokenizer.eos_token_id


def test_tokens_that_span_prompt_and_completion_are_counted():
    encoder = Encoder(byte_level(), loss_on="completion")
    encoder.encode([whole("qQ", completion_start=1), whole("q Q", completion_start=1)])
    assert byte_level().tokenize("qQ") == ["qQ"]
    assert encoder.counts == {"token_spans_prompt_and_completion": 1}


def test_a_delimiter_before_a_completion_is_no_spanning_token():
    pieces = (Piece(0, 1, None), Piece(1, 2, None), Piece(2, 5, 3), Piece(5, 8, 0))
    moved = Ordering("r", "reversed", (1, 0), "| NOPab ", pieces, completion_start=3)
    encoder = Encoder(byte_level(), loss_on="completion")
    (example,) = encoder.encode([moved])
    assert not encoder.counts
    kept = [token for token in example.labels[:-1] if token != IGNORED]
    assert byte_level().decode(kept).strip() == "NOP"


def test_a_record_without_a_completion_is_named():
    with pytest.raises(ModelError, match="'r' has no completion"):
        Encoder(byte_level(), loss_on="completion").encode([whole("Ann Lee")])


@pytest.mark.parametrize("options", [{"loss_on": "completion"}, {"tag": Tag(text="moved: ")}])
def test_a_tokenizer_without_offsets_is_refused_where_they_are_needed(options):
    class Slow(SimpleNamespace):
        def __call__(self, given, **_):
            rows = [[ord(letter) for letter in text] for text in ([given] if isinstance(given, str) else given)]
            return {"input_ids": rows[0] if isinstance(given, str) else rows}

    slow = Slow(is_fast=False, name_or_path="slow", eos_token_id=0, all_special_ids=[0], get_added_vocab=dict)
    assert Encoder(slow).encode([whole("ab")])[0].input_ids == (97, 98, 0)
    with pytest.raises(ModelError, match="slow tokenizer"):
        Encoder(slow, **options)


@given(text=TEXT)
def test_offsets_stand_where_the_tokens_do(tokenizer, text):
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    spans = encoded["offset_mapping"]
    assert spans == sorted(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    if tokenizer is wordpiece() or unicodedata.normalize("NFKC", text) != text:
        return  # what a normalizer drops stands nowhere
    covered = {place for start, end in spans for place in range(start, end)}
    assert all(place in covered for place, letter in enumerate(text) if not letter.isspace())
    if tokenizer is byte_level():
        for token, (start, end) in zip(encoded["input_ids"], spans, strict=True):
            piece = tokenizer.decode([token])
            assert "\ufffd" in piece or piece.lstrip() == text[start:end].lstrip()


@pytest.mark.parametrize("loss_on", ["sequence", "completion"])
def test_sentinels_are_learned_where_the_whole_sequence_is(loss_on):
    tokenizer = byte_level()
    segmentation = Segmentation("r", "ab NOP Q", (2, 6), (0,), "test", completion_start=2)
    ordering = permute(segmentation, "fim", generator_for(0, 0, "r"), sentinels=("<p>", "<s>", "<m>"))
    (example,) = Encoder(tokenizer, loss_on=loss_on).encode([ordering])
    learned = tokenizer.decode([token for token in example.labels[:-1] if token != IGNORED])
    assert learned == ordering.text if loss_on == "sequence" else sorted(learned.replace(" ", "")) == sorted("NOPQ")
