"""The segmenters that ask a language model: exact for any text, honest about what fell back."""

import json
import re

import pytest
from fakes import TEXT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from misbehaving import Script, says, serving

from spt.config import Segment
from spt.errors import ConfigError
from spt.records import Record
from spt.segment import make_segmenter

NAMES = 'Daphne Barrington, who painted the harbour, met Uriah Hawthorne in New York. She sold "The Sea of Oslo" twice.'


@pytest.fixture
def segmenter(model_folder, prompt_file, tmp_path):
    """Return a function: name of a segmenter, settings of its assistant → the segmenter."""

    def segmenter(name, **assistant):
        values = {"model": str(model_folder), "prompt": str(prompt_file), "cache": str(tmp_path / "cache"), **assistant}
        return make_segmenter(Segment(segmenter=name, assistant=values))

    return segmenter


def records(*texts):
    return [Record(str(number), text, "test", number) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("assistant", "generate"), ("assistant", "constrained"), ("assistant", "score"), ("hybrid", "constrained")],
)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT | st.just("One two three.\r\n\r\nFour five. 東京は日本。 \ud800 x"), max_size=4))
def test_units_join_to_the_text_whatever_the_model_says(segmenter, name, mode, texts):
    rows = segmenter(name, mode=mode, max_new_tokens=8).segment(records(*texts))
    assert ["".join(row.units) for row in rows] == texts
    assert all(unit.strip() for row in rows for unit in row.units if row.text.strip())
    assert {row.segmenter for row in rows} <= {name, "spacy", f"{name}, spacy"}


def test_the_assistant_decides_and_its_fallback_is_spacys_own_counted_by_reason(segmenter):
    script = Script(Ann_sings_well=[says("Ann sings | well")], Bob_sings_too=[says("Bob Dylan sang")])
    own = make_segmenter(Segment())
    texts = ["Ann sings well", "Bob sings too", "Ann sings well. Cleo paints the old harbour at night.", "Alone"]
    script.behaviours["Ann sings well."] = [says("Ann | sings well.")]
    script.behaviours["Cleo paints the old harbour at night."] = [says("")]
    with serving(script) as url:
        asked = segmenter("assistant", backend="openai", model="m", base_url=url, mode="generate")
        rows = asked.segment(records(*texts))
    assert [row.segmenter for row in rows] == ["assistant", "spacy", "assistant, spacy", "assistant"]
    assert rows[0].units == ("Ann sings", " well")
    assert rows[1].units == own.segment(records(*texts))[1].units
    assert rows[2].units[:2] == ("Ann", " sings well.")
    assert rows[2].units[2:] == own.segment(records(*texts))[2].units[-len(rows[2].units) + 2 :]
    assert [row.fallback for row in rows] == [None, "changed", "empty", None]
    assert asked.counts()["requests"] == 4


def test_the_hybrid_never_cuts_a_name_and_always_cuts_at_marks(segmenter):
    def everywhere(handler):
        return says(handler.sentence.replace(" ", " | "))(handler)

    def nowhere(handler):
        return says(handler.sentence)(handler)

    units = {}
    for label, behaviour in (("everywhere", everywhere), ("nowhere", nowhere)):
        script = Script()
        script.next = lambda request, behaviour=behaviour: behaviour
        with serving(script) as url:
            hybrid = segmenter("hybrid", backend="openai", model=label, base_url=url, mode="generate")
            units[label] = [unit.strip() for unit in hybrid.segment(records(NAMES))[0].units]
    assert units["everywhere"] == [
        "Daphne Barrington,", "who", "painted", "the", "harbour,", "met", "Uriah Hawthorne", "in", "New York.", "She",
        "sold", '"The Sea of Oslo"', "twice.",
    ]  # fmt: skip
    assert units["nowhere"] == [
        "Daphne Barrington,", "who painted the harbour,", "met Uriah Hawthorne in New York.", "She sold",
        '"The Sea of Oslo"', "twice.",
    ]  # fmt: skip


def test_assistant_and_hybrid_share_their_replies(segmenter):
    plain, hybrid = segmenter("assistant"), segmenter("hybrid")
    plain.segment(records(NAMES))
    hybrid.segment(records(NAMES))
    assert hybrid.counts() == {"requests": 0, "cache_hits": plain.counts()["requests"]}


def test_a_line_break_inside_a_sentence_moves_no_cut(segmenter):
    broken, joined = segmenter("assistant", mode="score").segment(
        records("Ann Lee\ndirected The\nSea.", "Ann Lee directed The Sea.")
    )
    assert broken.cuts == joined.cuts


def test_the_key_names_model_prompt_and_decoding_and_not_where_they_lie(segmenter, model_folder, tmp_path):
    key = segmenter("assistant", mode="score").key()["assistant"]
    assert re.fullmatch("[0-9a-f]{64}", key["prompt"])
    assert re.fullmatch("[0-9a-f]{64}", key["model"]["sha256"])
    assert str(model_folder.parent) not in json.dumps(key)
    moved = tmp_path / "moved"
    moved.symlink_to(model_folder)
    assert segmenter("assistant", mode="score", model=str(moved)).key()["assistant"] == key
    assert segmenter("assistant", mode="score", words_per_unit=3.0).key()["assistant"] != key
    assert segmenter("assistant", mode="score", batch_size=3, cache=str(tmp_path)).key()["assistant"] == key


def test_a_segmenter_without_its_assistant_says_what_to_give():
    with pytest.raises(ConfigError, match=r"segment\.assistant: required by the segmenter hybrid.*model"):
        make_segmenter(Segment(segmenter="hybrid"))


def test_an_unknown_prompt_names_those_there_are(segmenter, tmp_path):
    with pytest.raises(ConfigError, match="'unit' is neither a file nor one of units"):
        segmenter("assistant", prompt="unit")
    (tmp_path / "bad.yaml").write_text("{instruction: Cut., listing: Cut., request: Go., example: [a | b]}")
    with pytest.raises(ConfigError, match=r"(?s)bad\.yaml.*examples: required.*example: unknown key\. Did you mean"):
        segmenter("assistant", prompt=str(tmp_path / "bad.yaml"))


def test_the_bundled_prompt_shows_every_sentence_once_whole_and_once_cut(segmenter):
    from spt.assistant.prompt import read_prompt

    prompt = read_prompt("units")
    for plain, cut in prompt.demonstrations:
        assert "|" not in plain
        assert cut.replace(" |", "") == plain
        assert 2 <= len(plain.split()) / len(cut.split(" |")) <= 4
