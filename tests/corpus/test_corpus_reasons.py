"""Each way a row or file can be broken has its name, its line, and costs no other row."""

import gzip
import json
import random

import pytest
import zstandard

from spt.config import Source
from spt.corpus import Rejects, formats, read_records, stop
from spt.corpus.rows import RAW_LIMIT
from spt.errors import CorpusError

GOOD = b'{"text": "good"}\n'

BAD_ROWS = [
    ("a.jsonl", b'{"text": "caf\xe9"}\n', "invalid_utf8", "byte 0xe9 at column 14"),
    ("a.jsonl", b'{"text": "surrogate \xed\xa0\x80"}\n', "invalid_utf8", "0xed"),
    ("a.jsonl", b'{"text": \n', "invalid_json", "Expecting value"),
    ("a.jsonl", b'{"text": "a"} {"text": "b"}\n', "invalid_json", "Extra data"),
    ("a.jsonl", b'{"text": "nul \0"}\n', "invalid_json", "control character"),
    ("a.jsonl", b"[" * 100_000 + b"\n", "invalid_json", "nested too deep"),
    ("a.jsonl", b'{"text": "x", "n": ' + b"9" * 5000 + b"}\n", "invalid_json", "4300 digits"),
    ("a.jsonl", b'[{"text": "x"}]\n', "not_an_object", "a list; an array of objects is called .json"),
    ("a.jsonl", b'{"text": "x", "text": "y"}\n', "repeated_field", "text: given twice"),
    ("a.jsonl", b'{"text": "x", "a": {"b": "\\uD83D"}}\n', "lone_surrogate", "without its other half"),
    (
        "a.jsonl",
        b'{"Txt": "x", "id": "i", "no": 3}\n',
        "missing_field",
        "has Txt, id, no. Map the one meant: data.train.fi",
    ),
    ("a.jsonl", b'{"text": 12}\n', "wrong_type", "text is a number (12), not a string"),
    ("a.jsonl", b'{"text": null}\n', "wrong_type", "text is null"),
    ("a.jsonl", b'{"text": "x", "id": 1.5}\n', "wrong_type", "id is a number (1.5)"),
    ("a.jsonl", b'{"text": "x", "id": true}\n', "wrong_type", "id is a boolean"),
    ("a.jsonl", b'{"text": " \\u2003\\n"}\n', "empty_text", "white space only"),
    ("a.csv", b'"a" b\n', "invalid_csv", 'write a quote inside quotes as ""'),
    ("a.csv", b'"caf\xe9"\n', "invalid_utf8", "0xe9"),
    ("a.csv", b"one,two\n", "wrong_column_count", "2 cells where the header has 1"),
    ("a.csv", b"  \n", "empty_text", "white space only"),
    ("a.txt", b"caf\xe9\n", "invalid_utf8", "0xe9 at column 4"),
]


@pytest.mark.parametrize(("name", "row", "reason", "detail"), BAD_ROWS, ids=lambda value: str(value)[:24])
def test_a_bad_row_is_named_with_its_line_and_costs_no_other(name, row, reason, detail, tmp_path, read):
    good, head = (GOOD, b"") if name == "a.jsonl" else (b"good\n", b"text\n")
    (tmp_path / name).write_bytes(head + good + row + good)
    records, [error] = read(tmp_path / name)
    assert [record.text for record in records if record.text != "text"] == ["good", "good"]
    assert (error.source, error.reason, error.line) == (str(tmp_path / name), reason, 2 + len(head.splitlines()))
    assert detail in error.detail
    assert error.raw.encode()[:9].strip() == row[:9].strip().replace(b"\xe9", b"\\xe9")[:9]
    with pytest.raises(CorpusError, match=rf"{name}:\d: {reason}: "):
        list(read_records(Source(path=str(tmp_path / name)), reject=stop))


def test_a_broken_line_is_named_with_file_and_line(tmp_path):
    # Case 14: datasets says "Expected object or value", without file and line.
    path = tmp_path / "broken.jsonl"
    path.write_text('{"text": "one"}\n{"text": "two\n{"text": "three"}\n')
    with pytest.raises(CorpusError) as caught:
        list(read_records(Source(path=str(path)), reject=stop))
    assert str(caught.value).startswith(f"{path}:2: invalid_json: Unterminated string starting at column 10")
    rejects = Rejects()
    assert [record.line for record in read_records(Source(path=str(path)), reject=rejects)] == [1, 3]
    assert rejects.counts == {"invalid_json": 1}
    assert rejects.take() == [{"source": str(path), "line": 2, "reason": "invalid_json", "raw": '{"text": "two'}]
    assert rejects.take() == []


def test_the_first_reject_of_each_reason_is_shown(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n{"text": " "}\n{"text": 1}\n')
    assert not list(read_records(Source(path=str(tmp_path / "a.jsonl")), reject=Rejects()))
    shown = capsys.readouterr().err
    assert [line.split(": ")[2] for line in shown.splitlines()] == ["empty_text", "wrong_type"]


def test_of_equal_ids_the_first_is_kept(tmp_path, read):
    (tmp_path / "a.jsonl").write_text('{"id": 7, "text": "one"}\n{"id": "b:1", "text": "two"}\n')
    (tmp_path / "b.jsonl").write_text('{"text": "three"}\n{"id": "7", "text": "four"}\n')
    records, errors = read(tmp_path)
    assert [record.text for record in records] == ["one", "two"]
    assert [(error.reason, error.line) for error in errors] == [("duplicate_id", 1), ("duplicate_id", 2)]
    assert f"'7' was first at {tmp_path / 'a.jsonl'}:1" in errors[1].detail


def test_raw_is_bounded(tmp_path, read):
    (tmp_path / "a.jsonl").write_text("x" * 10_000_000 + "\n")
    _, [error] = read(tmp_path / "a.jsonl")
    assert len(error.raw) == RAW_LIMIT + 1


def random_lines(count):
    draw = random.Random(0)
    return [json.dumps({"id": n, "text": f"{draw.random()}"}).encode() + b"\n" for n in range(count)]


@pytest.mark.parametrize(
    ("suffix", "compress", "reason"),
    [(".gz", gzip.compress, "truncated_gzip"), (".zst", zstandard.compress, "truncated_zstd")],
)
def test_rows_before_a_truncation_are_delivered(suffix, compress, reason, tmp_path, read):
    lines = random_lines(3_000)
    whole = compress(b"".join(lines[:2_000])) + compress(b"".join(lines[2_000:]))
    path = tmp_path / f"cut.jsonl{suffix}"
    for size in (0, 5, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:size])
        records, [error] = read(path)
        assert (error.reason, error.line) == (reason, 0)
        assert [record.id for record in records] == [str(number) for number in range(len(records))]
        assert len(records) >= 3_000 * (size / len(whole)) - 1_300 * (suffix == ".zst") - 200
    assert "rows up to line" in error.detail


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_rows_before_a_damage_are_delivered(form, suffix, compress, tmp_path, read):
    lines = random_lines(3_000)
    data = {
        "jsonl": b"".join(lines),
        "json": b"[" + b",".join(lines) + b"]",
        "csv": b"id,text\n" + b"".join(b"%d,%d\n" % (n, n * 7919 % 3001) for n in range(3_000)),
    }[form]
    whole = compress(data)
    path = tmp_path / f"damaged.{form}{suffix}"
    path.write_bytes(compress(data)[:-8] + b"\xff" * 8 if suffix == ".gz" else whole + b"garbage")
    records, [error] = read(path)
    assert (error.reason, len(records)) == ("damaged", 3_000)
    path.write_bytes(b"no" + whole)
    records, [error] = read(path)
    assert (error.reason, records) == ("damaged", [])


def test_a_json_array_cut_short_gives_its_whole_objects(tmp_path, read):
    text = json.dumps([{"text": f"number {n}"} for n in range(3)], indent=1)
    path = tmp_path / "a.json"
    for size in range(1, len(text) - 1):
        path.write_text(text[:size])
        records, [error] = read(path)
        assert error.reason == "invalid_json"
        assert len(records) == text[:size].count("}")
    path.write_text(text.replace("number 1", 'number" 1'))
    records, [error] = read(path)
    assert (len(records), error.line) == (1, 5)


def test_a_json_array_goes_on_after_an_object_that_is_not_utf8(tmp_path, read):
    (tmp_path / "a.json").write_bytes(b'[{"text": "caf\xe9"},\n 3,\n {"text": "good"}]')
    [record], errors = read(tmp_path / "a.json")
    assert (record.text, record.id) == ("good", "a:3")
    assert [(error.reason, error.line) for error in errors] == [("invalid_utf8", 1), ("not_an_object", 2)]


@pytest.mark.parametrize(
    ("name", "data", "reason", "remedy"),
    [
        ("a.jsonl", gzip.compress(GOOD, mtime=0), "unsupported", "name it *.gz"),
        ("a.csv", "text\ngood\n".encode("utf-16"), "unsupported", "iconv -f UTF-16 -t UTF-8"),
        ("a.csv", b"PK\x03\x04", "unsupported", "save it as CSV"),
        ("a.json", GOOD, "unsupported", "one object a line named .jsonl"),
        ("a.json", b'{"text": [1]}{"text": [1]}', "unsupported", "one object a line named .jsonl"),
        ("a.csv", b"text,n,text\ngood,1,better\n", "repeated_field", "rename them"),
        ("a.parquet", b"PAR1 and no more", "damaged", "cannot be read"),
    ],
)
def test_a_file_of_another_kind_is_said_with_the_remedy(name, data, reason, remedy, tmp_path, read):
    (tmp_path / name).write_bytes(data)
    records, errors = read(tmp_path / name)
    assert (records, errors[0].reason) == ([], reason)
    assert remedy in errors[0].detail


def test_an_unclosed_quote_says_which_lines_it_took(tmp_path, read, monkeypatch):
    (tmp_path / "a.csv").write_text('text\none\n"two\nthree\nfour\n')
    records, [error] = read(tmp_path / "a.csv")
    assert ([record.text for record in records], error.reason, error.line) == (["one"], "invalid_csv", 3)
    assert "lines 3 to 5 are one row" in error.detail
    monkeypatch.setattr(formats, "FIELD_LIMIT", 8)
    records, [error] = read(tmp_path / "a.csv")
    assert "field larger than field limit (8) (lines 3 to 4" in error.detail
    assert [record.text for record in records] == ["one", "four"]


def test_prompt_and_completion_are_joined_as_given(tmp_path, read):
    (tmp_path / "a.jsonl").write_text('{"prompt": "A is", "completion": " B", "n": 1, "id": ""}\n')
    for fields in ({}, {"prompt": "prompt", "completion": "completion"}):
        [record], errors = read(tmp_path / "a.jsonl", **fields)
        assert (record.text, record.completion_start, record.columns, record.id) == ("A is B", 4, {"n": 1}, "a:1")
        assert not errors
    [record], _ = read(tmp_path / "a.jsonl", text="prompt")
    assert (record.text, record.completion_start) == ("A is", None)
    assert record.columns == {"completion": " B", "n": 1}


def test_a_misspelt_id_mapping_is_refused(tmp_path, read):
    (tmp_path / "a.jsonl").write_text('{"text": "x", "key": "k"}\n')
    assert read(tmp_path / "a.jsonl", id="key")[0][0].id == "k"
    assert read(tmp_path / "a.jsonl", id="kee")[1][0].reason == "missing_field"


def test_limit_counts_records_and_reads_no_further(tmp_path, read):
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n{"text": "one"}\n{"text": "two"}\nbroken\n')
    records, errors = read(tmp_path / "a.jsonl", limit=2)
    assert [record.text for record in records] == ["one", "two"]
    assert [error.reason for error in errors] == ["empty_text"]
