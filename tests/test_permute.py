"""Orders are permutations, nothing is lost or glued, and what is drawn depends on seed, epoch and id alone."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from spt.config import Permute, Segment
from spt.permute import ORDERS, draw_ordering, generator_for, permute
from spt.records import Segmentation, writes_no_spaces

SIGN = "¦"
CORE = st.sampled_from(
    ["Ann Lee", "directed", "The Sea.", "漢字", "、", "かな", "ไทย", "👩\u200d🚀", "e\u0301", "a", "(", "x b"]
)
GAP = st.sampled_from(["", "", " ", "  ", "\n", "\u00a0", "\u3000"])


@st.composite
def segmentations(draw, unit):
    """Any text in any units, with sentences at some of the cuts."""
    units = draw(st.lists(unit, min_size=1, max_size=12))
    offsets = [len("".join(units[:n])) for n in range(1, len(units))]
    sentences = sorted(draw(st.sets(st.sampled_from(offsets)))) if offsets else []
    return Segmentation("r", "".join(units), tuple(offsets), (0, *sentences), "test")


ANY = segmentations(st.one_of(CORE, st.text(" \n漢ab\u00a0", min_size=1, max_size=4)))
LEGAL = segmentations(st.tuples(GAP, CORE, st.sampled_from(["", "", " "])).map("".join))
ORDER = st.sampled_from(sorted(ORDERS))
PLAIN = sorted(set(ORDERS) - {"fim"})  # without sentinels
SEED = st.integers(0, 5)


def ordered(segmentation, order, seed, **options):
    return permute(segmentation, order, generator_for(seed, 0, "r"), **options)


def make(*units, sentences=()):
    cuts = tuple(len("".join(units[:n])) for n in range(1, len(units)))
    return Segmentation("r", "".join(units), cuts, (0, *sentences), "test")


@given(segmentation=ANY, order=ORDER, seed=SEED, delimiter=st.sampled_from([None, SIGN]), max_units=st.integers(1, 14))
def test_every_character_is_kept_once_and_only_seams_are_added(segmentation, order, seed, delimiter, max_units):
    ordering = ordered(segmentation, order, seed, delimiter=delimiter, max_units=max_units)
    assert sorted(ordering.permutation) == list(range(len(segmentation.units)))
    assert [piece.start for piece in ordering.pieces] == [0, *(piece.end for piece in ordering.pieces)][:-1]
    assert "".join(ordering.text[piece.start : piece.end] for piece in ordering.pieces) == ordering.text
    sources = []
    for piece in ordering.pieces:
        part = ordering.text[piece.start : piece.end]
        if piece.source is None:
            assert part.isspace() or part == delimiter or set(part.split()) <= {*Permute().fim_sentinels}
        else:
            assert segmentation.text[piece.source : piece.source + len(part)] == part
            sources += range(piece.source, piece.source + len(part))
    assert sorted(sources) == list(range(len(segmentation.text)))
    assert (ordering.order == "original") == (list(ordering.permutation) == sorted(ordering.permutation))


@given(segmentation=ANY, seed=SEED, delimiter=st.sampled_from([None, SIGN]))
def test_the_original_order_is_the_text_itself(segmentation, seed, delimiter):
    ordering = ordered(segmentation, "original", seed, delimiter=delimiter)
    assert (ordering.text, ordering.order) == (segmentation.text, "original")


@given(segmentation=LEGAL, order=ORDER, seed=SEED)
def test_units_never_touch_unless_they_did_or_their_script_writes_no_spaces(segmentation, order, seed):
    text, ordering = segmentation.text, ordered(segmentation, order, seed)
    sources = [None] * len(ordering.text)
    for piece in ordering.pieces:
        if piece.source is not None:
            sources[piece.start : piece.end] = range(piece.source, piece.source + piece.end - piece.start)
    for (left, first), (right, second) in pairwise(zip(ordering.text, sources, strict=True)):
        if left.isspace() or right.isspace() or None in (first, second) or second == first + 1:
            continue
        assert writes_no_spaces(left) or writes_no_spaces(right)
        assert not (first < second and text[first + 1 : second].isspace()), "white space between them was lost"


@given(segmentation=LEGAL, order=st.sampled_from(PLAIN), seed=SEED, max_units=st.integers(1, 14))
def test_a_delimiter_stands_exactly_between_units_that_did_not_follow_each_other(segmentation, order, seed, max_units):
    ordering = ordered(segmentation, order, seed, delimiter=SIGN, max_units=max_units)
    cores = (
        start + len(unit) - len(unit.lstrip())
        for (start, _), unit in zip(segmentation.spans, segmentation.units, strict=True)
    )
    starts = {core: unit for unit, core in enumerate(cores)}
    found = []
    for piece in ordering.pieces:
        if ordering.text[piece.start : piece.end] == SIGN:
            found.append(SIGN)
        elif piece.source in starts and not ordering.text[piece.start].isspace():
            found.append(starts[piece.source])
    expected = []
    for place, unit in enumerate(ordering.permutation):
        if place and ordering.permutation[place - 1] != unit - 1:
            expected.append(SIGN)
        expected.append(unit)
    assert found == expected


@given(segmentation=ANY, seed=SEED, max_units=st.integers(1, 14))
def test_windows_are_whole_sentences_and_as_large_as_they_may_be(segmentation, seed, max_units):
    n = len(segmentation.units)
    permutation = ordered(segmentation, "reversed", seed, max_units=max_units).permutation
    bounds = [0]
    while bounds[-1] < n:
        bounds.append(permutation[bounds[-1]] + 1)
    starts = (0, *segmentation.cuts)
    sentences = [*(starts.index(offset) for offset in segmentation.sentences), n]
    if n <= max_units:
        assert bounds == [0, n]
    else:
        assert set(bounds) <= set(sentences)
        for start, stop in pairwise(bounds):
            assert stop - start <= max_units or sentences[sentences.index(start) + 1] == stop
            if stop < n:
                assert sentences[sentences.index(stop) + 1] - start > max_units
    for start, stop in pairwise(bounds):
        shuffled = ordered(segmentation, "shuffled", seed, max_units=max_units).permutation[start:stop]
        rotated = ordered(segmentation, "rotated", seed, max_units=max_units).permutation[start:stop]
        natural = list(range(start, stop))
        assert sorted(shuffled) == sorted(rotated) == natural
        assert stop - start == 1 or list(shuffled) != natural
        cut = rotated.index(start)
        assert list(rotated) == natural[-cut:] + natural[:-cut]
        assert stop - start == 1 or cut > 0


def test_units_move_between_gaps_that_keep_their_places():
    segmentation = make("Ann Lee", "\n directed", " The Sea. ")
    assert ordered(segmentation, "reversed", 0).text == "The Sea.\n directed Ann Lee "
    assert ordered(segmentation, "reversed", 0, delimiter="|").text == "The Sea.\n |\n directed | Ann Lee "


def test_neighbours_that_move_to_an_empty_gap_keep_a_space():
    segmentation = make("猫", "Anna", " Bob")
    rotations = {ordered(segmentation, "rotated", seed).text for seed in range(20)}
    assert rotations == {"Anna Bob 猫", "Bob猫 Anna"}


SETTINGS = Permute(orders={"original": 1, "reversed": 1, "shuffled": 1, "rotated": 1})
FIVE = make("a", " b", " c", " d", " e")


def draws(settings=SETTINGS, seed=7, epoch=1, count=200):
    records = [Segmentation(f"é:{n}", FIVE.text, FIVE.cuts, FIVE.sentences, "test") for n in range(count)]
    return [list(draw_ordering(record, settings, Segment(), seed=seed, epoch=epoch).permutation) for record in records]


def test_another_process_draws_the_same_orders():
    code = "import json; from test_permute import draws; print(json.dumps(draws()))"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.path.dirname(__file__)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == draws()


def test_seeds_epochs_and_records_draw_apart():
    base = draws()
    for other in (draws(seed=8), draws(epoch=2), base[1:] + base[:1]):
        assert sum(left == right for left, right in zip(base, other, strict=True)) < 50


def test_neither_the_order_of_the_weights_nor_a_weight_of_zero_changes_a_draw():
    weights = {"rotated": 0.5, "original": 2, "reversed": 1}
    base = draws(Permute(orders=weights))
    assert draws(Permute(orders=dict(sorted(weights.items())))) == base
    assert draws(Permute(orders={"shuffled": 0, **weights})) == base


def test_a_curriculum_changes_the_orders_from_its_epochs_on_and_no_draw_before():
    record, first = make(*"abcdefghijklmnopqrst"), Permute(orders={"rotated": 1})
    settings = Permute(
        orders={"rotated": 1},
        curriculum=({"epoch": 2, "orders": {"fim": 1}}, {"epoch": 4, "orders": {"original": 1}}),
    )
    drawn = [draw_ordering(record, settings, Segment(), seed=0, epoch=epoch) for epoch in range(6)]
    assert [ordering.order for ordering in drawn] == ["rotated"] * 2 + ["fim"] * 2 + ["original"] * 2
    assert drawn[:2] == [draw_ordering(record, first, Segment(), seed=0, epoch=epoch) for epoch in range(2)]
    assert settings.all_orders == {"rotated", "fim", "original"}
    assert settings.signs == settings.fim_sentinels


@pytest.mark.parametrize(
    "weights", [{"original": 1, "reversed": 1, "shuffled": 1}, {"original": 1, "rotated": 2, "reversed": 0}]
)
def test_orders_come_as_often_as_their_weights_say(weights):
    n, settings = 3000, Permute(orders=weights)
    drawn = Counter(
        draw_ordering(Segmentation(str(k), FIVE.text, FIVE.cuts, (0,), "t"), settings, Segment(), seed=1, epoch=0).order
        for k in range(n)
    )
    expected = {name: n * weight / sum(weights.values()) for name, weight in weights.items() if weight}
    assert drawn.keys() == expected.keys()
    assert chisquare([drawn[name] for name in expected], list(expected.values())).pvalue > 0.01


MOVED = {"shuffled": set(permutations(range(3))) - {(0, 1, 2)}, "rotated": {(1, 2, 0), (2, 0, 1)}}


@pytest.mark.parametrize("order", sorted(MOVED))
def test_all_orders_of_a_kind_are_equally_likely(order):
    segmentation = make("a", " b", " c")
    drawn = Counter(ordered(segmentation, order, seed).permutation for seed in range(2000))
    assert drawn.keys() == MOVED[order]
    assert chisquare(list(drawn.values())).pvalue > 0.01


def test_the_orders_drawn_are_those_of_every_version_before():
    settings = Permute(orders={"original": 1, "reversed": 1, "shuffled": 1, "rotated": 1}, max_units=3)
    units = make("Ann Lee,", " of", " 東京", "、", "directed", "\n The Sea.", " It", " won. ", sentences=(15, 33))
    drawn = [
        draw_ordering(replace(units, id=f"r{n}"), settings, Segment(), seed=n % 5, epoch=n % 3) for n in range(400)
    ]
    shown = "\n".join(f"{o.order} {o.permutation} {o.text!r} {[tuple(piece) for piece in o.pieces]}" for o in drawn)
    assert hashlib.sha256(shown.encode()).hexdigest()[:16] == "a465fb08c74e257c"


@given(segmentation=LEGAL, seed=SEED, delimiter=st.sampled_from([None, SIGN]))
def test_fim_is_suffix_prefix_middle_each_behind_its_sentinel(segmentation, seed, delimiter):
    ordering = ordered(segmentation, "fim", seed, delimiter=delimiter)
    n = len(segmentation.units)
    if n == 1:
        assert (ordering.order, ordering.text) == ("original", segmentation.text)
        return
    signs = [ordering.text.count(sign) for sign in Permute().fim_sentinels]
    assert signs == [1, 1, 1]
    assert SIGN not in ordering.text
    begin, suffix, prefix, middle = re.split("<SUF>|<PRE>|<MID>", ordering.text)
    assert not begin.strip()
    assert suffix.strip()
    assert middle.strip()
    letters = ["".join(part.split()) for part in (prefix + middle + suffix, segmentation.text)]
    assert letters[0] == letters[1]
    for sign in Permute().fim_sentinels:
        before, after = ordering.text.split(sign)
        for letter in (before[-1:], after[:1]):
            assert not letter or letter.isspace() or writes_no_spaces(letter)


def test_every_split_of_fim_is_equally_likely():
    segmentation = make("a", " b", " c", " d")
    drawn = Counter(ordered(segmentation, "fim", seed).text for seed in range(2000))
    assert "<SUF> d <PRE> a <MID> b c" in drawn
    assert "<SUF> b c d <PRE> <MID> a" in drawn
    assert len(drawn) == 6
    assert chisquare(list(drawn.values())).pvalue > 0.01


def test_sentinels_stand_in_every_window_that_moves():
    segmentation = make("a", " b.", " c", " d.", " e.", sentences=(4, 9))
    texts = {ordered(segmentation, "fim", seed, max_units=2).text for seed in range(9)}
    assert texts == {"<SUF> b. <PRE> <MID> a <SUF> d. <PRE> <MID> c e."}
