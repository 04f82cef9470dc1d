"""General text beside the facts: at its share, untouched, whole, and the same whatever the ranks and the epoch."""

import json
from collections import Counter
from itertools import islice

import hypothesis
import pytest
from experiment import manifest, write_experiment
from fakes import CORPUS, TEXT
from hypothesis import given
from hypothesis import strategies as st
from streams import examples_of, learned_text, stream_of

from spt.config import read_config
from spt.errors import CorpusError, InputError
from spt.preprocess import preprocess
from spt.train import train
from spt.train.mix import Mixture, cut_to_fit, draw_pieces
from spt.train.setup import train_key

LINES = [f"General line {n} says something plain." for n in range(23)]


def write(folder, *lines, **sections):
    path = write_experiment(folder, **sections)
    (folder / "general.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    preprocess(read_config(path))
    return path, [f"data.mix.path={folder / 'general.jsonl'}", "data.mix.share=0.25", "train.eval_steps=null"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path, mix = write(tmp_path_factory.mktemp("mixed"), *({"text": line} for line in LINES))
    return stream_of(path, *mix)


@given(pieces=st.integers(1, 40), per_epoch=st.integers(1, 60), seed=st.integers(0, 2**63 - 1))
def test_every_piece_is_taken_once_before_any_is_taken_again(pieces, per_epoch, seed):
    drawn = [draw_pieces(pieces, per_epoch, seed=seed, epoch=epoch) for epoch in range(5)]
    assert [len(epoch) for epoch in drawn] == [per_epoch] * 5
    stream = [piece for epoch in drawn for piece in epoch]
    for start in range(0, len(stream), pieces):
        passed = stream[start : start + pieces]
        assert len(set(passed)) == len(passed)
        assert set(passed) <= set(range(pieces))


def test_each_pass_and_each_seed_takes_the_pieces_in_another_order():
    orders = [draw_pieces(50, 50, seed=seed, epoch=epoch) for seed in (1, 2, 1 + 2**32) for epoch in (0, 1)]
    assert all(left != right for n, left in enumerate(orders) for right in orders[:n])


@given(facts=st.integers(1, 500), share=st.floats(0.01, 0.95))
def test_the_share_is_that_of_all_examples(facts, share):
    mixed = Mixture((), share, {}).per_epoch(facts)
    assert mixed >= 1
    assert mixed == 1 or abs(mixed - share * (facts + mixed)) <= 0.5


def test_the_mix_is_learned_whole_in_its_own_order_and_without_a_tag(mixed):
    assert mixed.examples_per_epoch == 40 + 13
    assert mixed.steps_per_epoch == 5
    (step,) = islice(mixed.steps(0), 1)
    names = {name for step in mixed.steps(0) for name in step.ids if name.startswith("mix:")}
    assert len(names) == len(LINES)
    general = Counter()
    for step in mixed.steps(0):
        assert step.counts["mix_examples"] == sum(name.startswith("mix:") for name in step.ids)
        for example in examples_of(step.batches):
            text = learned_text(mixed.encoder.tokenizer, example)
            general[text] += text in LINES
            assert not text.startswith("General") or mixed.encoder.tag.token_id not in example[0]
    assert {text for text, count in general.items() if count} == set(LINES)
    assert max(general.values()) - min(count for count in general.values() if count) <= 1


def test_under_loss_on_completion_the_mix_is_learned_whole(tmp_path):
    path, mix = write(tmp_path, *({"text": line} for line in LINES), train={"loss_on": "completion"})
    rows = [{"prompt": f"Who is {n}? ", "completion": f"Nobody {n}."} for n in range(12)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    preprocess(read_config(path), force=True)
    stream = stream_of(path, *mix, "segment.segmenter=word")
    learned = {
        learned_text(stream.encoder.tokenizer, example).strip()
        for step in stream.steps(0)
        for example in examples_of(step.batches)
    }
    assert learned & set(LINES)
    assert not any("Who" in text for text in learned)


@given(texts=st.lists(TEXT, max_size=6), room=st.integers(2, 9))
@hypothesis.example(texts=[" "], room=2)  # its last token begins after the last character
def test_pieces_joined_are_the_text(tokenizer, texts, room):
    text = "".join([*texts, CORPUS[1], *texts])
    spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    pieces = cut_to_fit(text, spans, room)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() for piece in pieces)


def test_a_long_text_is_cut_between_words_and_nothing_of_it_is_lost(tmp_path):
    long = " ".join(f"word{n}" for n in range(200))
    path, mix = write(tmp_path, {"id": "long", "text": long}, {"text": "Short."}, train={"max_length": 24})
    stream = stream_of(path, *mix)
    assert stream.mix.counts["texts"] == 2
    assert stream.mix.counts["pieces"] == len(stream.mix.rows) > 10
    assert "".join(stream.mix.rows["text"]) == long + "Short."
    assert stream.mix.rows["id"][:2] == ["mix:long#1", "mix:long#2"]
    assert all(piece.startswith(" word") for piece in stream.mix.rows["text"][1:-1])
    encoded = stream.encoder.tokenizer(list(stream.mix.rows["text"]))["input_ids"]
    assert 12 < max(map(len, encoded)) < 24


def test_bad_rows_of_the_mix_stop_or_are_counted_and_the_key_covers_what_is_read(tmp_path):
    lines = [*({"text": line} for line in LINES), {"text": 7}]
    path, mix = write(tmp_path, *lines, train={"epochs": 2, "max_steps": 7})
    with pytest.raises(CorpusError, match="text is a number"):
        train(read_config(path, mix))
    with pytest.raises(CorpusError, match=r"no field body; .*Map the one meant: data\.mix\.fields\.text: text"):
        stream_of(path, *mix, "data.mix.fields.text=body")
    config = read_config(path, [*mix, "data.on_error=reject", "data.mix.limit=20"])
    keys = [train_key(c)["mix"] for c in (config, read_config(path, mix), read_config(path))]
    assert keys[2] is None
    assert keys[0] != keys[1]
    stream = stream_of(path, *mix, "data.on_error=reject")
    assert stream.mix.counts == {"texts": 23, "pieces": 23, "rejects": {"wrong_type": 1}}


def test_a_mix_without_text_is_refused(tmp_path):
    path, mix = write(tmp_path)
    with pytest.raises(InputError, match=r"data\.mix: .*general\.jsonl holds no text"):
        stream_of(path, *mix)


def test_the_manifest_counts_the_examples_of_the_mix(tmp_path):
    path, mix = write(tmp_path, *({"text": line} for line in LINES), train={"epochs": 2})
    train(read_config(path, mix))
    made = manifest(tmp_path / "run")
    assert made["steps"] == 10
    assert made["counts"]["mix_examples"] == 26
    assert made["mix"] == {"texts": 23, "pieces": 23, "rejects": {}}
