"""One segmentation against another: what is counted, what is left out and why."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_preprocess import make_config

from spt import cli
from spt.errors import InputError
from spt.preprocess import compare, preprocess
from spt.preprocess.compare import read_joined
from spt.segment.agreement import agreement

CUTS = st.sets(st.integers(1, 30))


def gold(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@given(pairs=st.lists(st.tuples(CUTS, CUTS), max_size=5))
def test_agreement_is_symmetric_and_whole_only_with_oneself(pairs):
    found, turned = agreement(pairs), agreement((right, left) for left, right in pairs)
    assert (found.precision, found.recall, found.f1) == (turned.recall, turned.precision, turned.f1)
    assert (found.f1 == 1) == all(left == right for left, right in pairs)
    assert min(found.precision, found.recall) - 1e-9 <= found.f1 <= max(found.precision, found.recall) + 1e-9


def test_rates_are_over_the_boundaries_of_the_texts_in_common(tmp_path):
    one = gold(tmp_path / "a.jsonl", {"text": "a b c d", "cuts": [1, 3]}, {"text": "only here", "cuts": []})
    two = gold(tmp_path / "b.jsonl", {"text": "a b c d", "cuts_x": [1, 5, 6], "cuts_y": [3]})
    result = compare(one, two)
    assert result["agreements"] == [
        {"a": "cuts", "b": "cuts_x", "precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5},
        {"a": "cuts", "b": "cuts_y", "precision": 1 / 2, "recall": 1, "f1": 2 / 3},
    ]
    assert (result["texts"], result["left_out"]) == (1, {"a": {"not in the other": 1}, "b": {}})


def test_a_segmented_folder_or_its_run_is_compared_with_gold(tmp_path):
    folder = preprocess(make_config(tmp_path, [{"text": "Ann Lee sang."}]))
    other = gold(tmp_path / "gold.jsonl", {"text": "Ann Lee sang.", "cuts": [7]})
    for place in (folder, tmp_path / "run"):
        assert compare(place, other)["agreements"][0] | {"a": ""} == {
            "a": "", "b": "cuts", "precision": 0.5, "recall": 1, "f1": 2 / 3
        }  # fmt: skip


def test_lines_with_separators_are_matched_by_all_but_white_space_and_the_rest_counted_by_reason(tmp_path):
    path = tmp_path / "paper.txt"
    copied = "You can play every game of this kind on a telephone, [SEP] which"
    lines = [
        "Ann Lee [SEP], who sang [SEP] in Lyon.", "Ben  Cole [SEP] [SEP] left. [SEP]", "Ann Lee, [SEP] who sing.",
        f"{copied} works.", f"{copied} breaks.", f"{copied} ends.", "",
    ]  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    side = read_joined(path, ["Ann Lee, who sang in Lyon.", "Ben Cole left."])
    assert side.segmentations["paper.txt"] == {"Ann Lee, who sang in Lyon.": {7, 17}, "Ben Cole left.": {8}}
    assert side.left_out == {"not exact": 1, "copied": 3, "trailing separator": 1, "repeated separator": 1}


@given(
    text=st.lists(st.sampled_from(["ab", "c", "漢字", "e\u0301", ",", "."]), min_size=1, max_size=12),
    cut=st.sets(st.integers(1, 11)),
)
def test_any_legal_segmentation_comes_back_from_its_joined_line(tmp_path_factory, text, cut):
    path = tmp_path_factory.mktemp("joined") / "line.txt"
    cuts = {len(" ".join(text[:place])) for place in cut if place < len(text)}
    line = "".join(f" [SEP]{word}" if place in cut and place else f" {word}" for place, word in enumerate(text))
    path.write_text(line, encoding="utf-8")
    assert read_joined(path, [" ".join(text)]).segmentations["line.txt"] == {" ".join(text): cuts}


def test_only_a_line_feed_ends_a_row(tmp_path):
    text = "Ann\u2028Lee,\u0085who sang"
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps({"text": text, "cuts": [8]}, ensure_ascii=False), encoding="utf-8")
    (tmp_path / "paper.txt").write_text(text[:8] + " [SEP]" + text[8:], encoding="utf-8")
    assert compare(path, tmp_path / "paper.txt")["agreements"][0]["f1"] == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_side_that_is_not_utf_8_is_refused_with_its_line(tmp_path, name):
    (tmp_path / name).write_bytes(b"\xe9")
    with pytest.raises(InputError, match=rf"{name}:1: .*0xe9"):
        compare(gold(tmp_path / "b.jsonl", {"text": "ab", "cuts": []}), tmp_path / name)


@pytest.mark.parametrize(
    "row", ["{", "[]", '{"text": "ab"}', '{"text": "ab", "cuts": [2]}', '{"text": "ab", "cuts": 1}']
)
def test_what_is_no_segmentation_is_refused_with_file_and_line(tmp_path, row):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "ab", "cuts": [1]}\n' + row, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl:2: must be an object"):
        compare(path, path)


def test_sides_that_cannot_be_compared_are_refused(tmp_path):
    one, two = (
        gold(tmp_path / "a.jsonl", {"text": "ab", "cuts": []}),
        gold(tmp_path / "b.jsonl", {"text": "c", "cuts": []}),
    )
    with pytest.raises(InputError, match="no text in common"):
        compare(one, two)
    with pytest.raises(InputError, match="do not hold the texts exactly"):
        compare(tmp_path / "a.txt", tmp_path / "b.txt")
    with pytest.raises(InputError, match=r"none\.csv: cannot be compared"):
        compare(one, tmp_path / "none.csv")


def test_the_command_prints_the_table_or_one_object(tmp_path, monkeypatch, capsys):
    one = gold(tmp_path / "a.jsonl", {"text": "a b c", "cuts_x": [1], "cuts_y": [3]})

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["spt", "preprocess", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            cli.main()
        return done.value.code or 0, capsys.readouterr()

    code, told = call("--compare", one, one)
    assert code == 0
    assert "0.500" in told.out.splitlines()[-2]
    code, told = call("--compare", one, one, "--json")
    assert json.loads(told.out)["texts"] == 1
    code, told = call()
    assert (code, "give either CONFIG, or --compare A B" in told.err) == (2, True)
