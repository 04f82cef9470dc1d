"""A reply is believed only where it is the sentence, and every cut it gives is a boundary."""

import re

import pytest
from fakes import TEXT
from hypothesis import given
from hypothesis import strategies as st

from spt.assistant import Item
from spt.assistant.grammar import copy_grammar
from spt.assistant.verify import verify

SHOWN = ("Marta Lindqvist is the founder of the first floating library in Rotterdam.",)
SENTENCE = "“Ada Brown” — the mother of Carl, they say — was born in 1899."


def item(text):
    return Item(text, tuple(match.start() for match in re.finditer(r"(?<=\S)\s+(?=\S)", text)))


def units(text, cuts):
    return [text[start:end].strip() for start, end in zip((0, *cuts), (*cuts, len(text)), strict=True)]


@pytest.mark.parametrize(
    "reply",
    [
        "“Ada Brown” — | the mother of | Carl, | they say — | was born | in 1899.",
        "  “Ada Brown” — |the mother of| Carl,\n | they  say — | was born | in 1899. |\n",
        '"Ada Brown" - | the mother of | Carl | they say - | was born | in 1899',
        "“Ada Brown” — | the mother of | Carl |, they say — | | was born | in 1899.",
    ],
)
def test_white_space_and_punctuation_may_differ(reply):
    wanted = ["“Ada Brown” —", "the mother of", "Carl,", "they say —", "was born", "in 1899."]
    assert units(SENTENCE, verify(reply, item(SENTENCE), "|", SHOWN)) == wanted


def test_a_sign_standing_alone_goes_where_the_reply_puts_it():
    dashed = item("Rome — the city")
    assert units(dashed.text, verify("Rome | — the city", dashed, "|")) == ["Rome", "— the city"]
    assert units(dashed.text, verify("Rome - | the city", dashed, "|")) == ["Rome —", "the city"]
    assert units("! ? .", verify("! | ? | .", item("! ? ."), "|")) == ["!", "?", "."]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        (" | | ", "empty"),
        ("Marta Lindqvist | is the founder of | the first floating library | in Rotterdam.", "parroted"),
        ("Ada Brown | wrote | a song. Note: I kept the name whole.", "extra_text"),
        ("Ada Brown | wrote", "incomplete"),
        ("Ada Braun | wrote | a song.", "changed"),
        ("ada brown | wrote | a song.", "changed"),
        ("Here you are: Ada Brown | wrote | a song.", "changed"),
        ("Ada Br|own wrote a song.", "cut_inside_word"),
    ],
)
def test_what_is_no_copy_fails_by_its_reason(reply, reason):
    assert verify(reply, item("Ada Brown wrote a song."), "|", SHOWN) == reason


def test_a_sentence_that_holds_the_separator_is_not_guessed_at():
    assert verify("a | b", item("a | b"), "|") == "separator_in_text"


@given(text=TEXT, reply=TEXT | st.text(alphabet="ab |.", max_size=20), data=st.data())
def test_any_reply_gives_boundaries_or_a_reason(text, reply, data):
    one = item(text)
    for said in (reply, data.draw(st.permutations(text.split())).__str__(), text.replace(" ", " | ")):
        found = verify(said, one, "|", SHOWN)
        assert isinstance(found, str) or set(found) <= set(one.boundaries)


@given(text=TEXT.filter(lambda text: "|" not in text and text.strip()), data=st.data())
def test_a_faithful_reply_gives_just_its_cuts(text, data):
    one = item(text)
    cuts = tuple(offset for offset in one.boundaries if data.draw(st.booleans()))
    reply = " |".join(text[start:end] for start, end in zip((0, *cuts), (*cuts, len(text)), strict=True))
    assert verify(reply, one, "|") == cuts


def test_a_grammar_allows_the_separator_at_each_boundary_and_nothing_else():
    grammar = copy_grammar(item('Say "a\\b"\tnow.'), " |")
    assert grammar == 'root ::= "Say" (" |")? " \\"a\\\\b\\"" (" |")? "\\x09now."'
