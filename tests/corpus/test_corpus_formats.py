"""Every format gives the same records, and each its own lines."""

import csv
import datetime as dt
import gzip
import io
import json
import random
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spt.config import Source
from spt.corpus import json_rows, read_records, read_rows, stop

ROWS = [
    {"id": "a", "text": 'Žofie "Zo" Lee, painter\nof skies'},
    {"id": "b", "text": "宮沢 賢治\u2028wrote"},
    {"id": "c", "text": "x" * 200_000},
]


def as_jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(rows, delimiter=","):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return file.getvalue().encode()


def as_parquet(rows):
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


ENCODED = {
    "rows.jsonl": as_jsonl(ROWS),
    "rows.ndjson": as_jsonl(ROWS).rstrip(b"\n"),
    "bom.jsonl": b"\xef\xbb\xbf" + as_jsonl(ROWS),
    "crlf.JSONL": as_jsonl(ROWS).replace(b"\n", b"\r\n\r\n"),
    "rows.json": json.dumps(ROWS, indent=2).encode(),
    "data.json": json.dumps({"version": [1, {"data": 2}], "data": ROWS, "end": None}, ensure_ascii=False).encode(),
    "rows.csv": as_csv(ROWS),
    "bom.csv": b"\xef\xbb\xbf" + as_csv(ROWS).rstrip(b"\r\n"),
    "rows.tsv": as_csv(ROWS, "\t"),
}


COMPRESS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", ENCODED)
def test_every_format_gives_the_same_records(name, suffix, tmp_path, read):
    (tmp_path / (name + suffix)).write_bytes(COMPRESS[suffix](ENCODED[name]))
    records, errors = read(tmp_path / (name + suffix))
    assert not errors
    assert [(record.id, record.text, record.columns) for record in records] == [(r["id"], r["text"], {}) for r in ROWS]


@pytest.mark.parametrize(("compress", "suffix"), [(gzip.compress, ".gz"), (zstandard.compress, ".zst")])
def test_all_members_of_a_compressed_file_are_read(compress, suffix, tmp_path, read):
    data = as_jsonl(ROWS)
    pieces = [data[:7], b"", data[7:9000], data[9000:]]
    (tmp_path / f"rows.jsonl{suffix}").write_bytes(b"".join(map(compress, pieces)))
    records, errors = read(tmp_path / f"rows.jsonl{suffix}")
    assert [record.id for record in records] == ["a", "b", "c"]
    assert not errors


def test_gzip_padded_with_zeros_is_whole(tmp_path, read):
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(as_jsonl(ROWS)) + bytes(10_000))
    records, errors = read(tmp_path / "rows.jsonl.gz")
    assert (len(records), errors) == (3, [])


def test_line_is_where_the_row_starts(tmp_path, read):
    (tmp_path / "a.jsonl").write_text('\n{"text": "x"}\n\r\n  \n{"text": "y"}', newline="")
    (tmp_path / "b.csv").write_bytes(b'text,n\r\n\r\n"one\r\ntwo\rthree",1\r\nlast,2')
    (tmp_path / "c.json").write_text('[\n  {"text": "x"},\n\n  {"text":\n "y"}, {"text": "z"}\n]')
    (tmp_path / "d.txt").write_bytes(b"\xef\xbb\xbfone \r\n \t\n\x00two\x0bthree\n")
    records, errors = read(tmp_path)
    assert not errors
    assert [(record.id, record.line, record.text) for record in records] == [
        ("a:2", 2, "x"),
        ("a:5", 5, "y"),
        ("b:3", 3, "one\r\ntwo\rthree"),
        ("b:5", 5, "last"),
        ("c:1", 2, "x"),
        ("c:2", 4, "y"),
        ("c:3", 5, "z"),
        ("d:1", 1, "one "),
        ("d:3", 3, "\0two\x0bthree"),
    ]


def test_a_column_of_iso_dates_stays_text(tmp_path, read):
    # Case 15: datasets turns this column into timestamps.
    days = ["2024-01-01", "2024-02-29T00:00:00Z", "1999-12-31"]
    for name, data in {
        "d.jsonl": as_jsonl([{"text": day, "born": day} for day in days]),
        "d.json": json.dumps([{"text": day, "born": day} for day in days]).encode(),
        "d.csv": as_csv([{"text": day, "born": day} for day in days]),
    }.items():
        (tmp_path / name).write_bytes(data)
        records, errors = read(tmp_path / name)
        assert [record.text for record in records] == days
        assert [record.columns["born"] for record in records] == days
        assert not errors


def test_parquet_gives_the_same_records_and_columns_keep_their_types(tmp_path, read):
    (tmp_path / "rows.parquet").write_bytes(as_parquet(ROWS))
    assert [(record.id, record.text) for record in read(tmp_path / "rows.parquet")[0]] == [
        (row["id"], row["text"]) for row in ROWS
    ]
    columns = {"id": 7, "text": "x", "born": dt.date(1900, 1, 2), "tags": ["a"], "n": None}
    (tmp_path / "p.parquet").write_bytes(as_parquet([columns]))
    [record], _ = read(tmp_path / "p.parquet")
    assert record.id == "7"
    assert record.columns == {"born": dt.date(1900, 1, 2), "tags": ["a"], "n": None}


def test_a_parquet_row_that_is_no_text_is_rejected_alone(tmp_path, read):
    raw = pa.array([b"good", b"caf\xe9", b"also good"])
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"text": text}), tmp_path / "p.parquet")
    records, errors = read(tmp_path / "p.parquet")
    assert [record.text for record in records] == ["good", "also good"]
    assert [(error.reason, error.line) for error in errors] == [("invalid_utf8", 2)]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(
    rows=st.lists(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4), max_size=5),
    indent=st.none() | st.integers(0, 2),
    ascii_only=st.booleans(),
    window=st.integers(1, 40),
    wrapped=st.booleans(),
)
def test_an_array_is_read_alike_through_any_window(rows, indent, ascii_only, window, wrapped, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "window.json"
    text = json.dumps({"a": "]", "data": rows} if wrapped else rows, indent=indent, ensure_ascii=ascii_only)
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "WINDOW", window)
        found = list(read_rows(Source(path=str(path)), stop))
    assert [row.values for row in found] == rows
    assert all(json.loads(row.raw) == row.values for row in found)


@given(
    rows=st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=2, max_size=2), max_size=6
    )
)
def test_csv_gives_back_what_was_written(rows, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text", "b,\n"], *rows])
    found = list(read_rows(Source(path=str(path)), stop))
    assert [list(row.values.values()) for row in found] == rows


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".jsonl.gz", ".jsonl.zst"])
def test_memory_stays_flat_as_the_file_grows(suffix, tmp_path):
    def peak(count):
        draw = random.Random(count)
        rows = [{"text": f"{number} {draw.random()} " + "word " * 40} for number in range(count)]
        plain = suffix.removesuffix(".gz").removesuffix(".zst")
        data = {".jsonl": as_jsonl, ".csv": as_csv, ".parquet": as_parquet, ".json": lambda r: json.dumps(r).encode()}
        encoded = data[plain](rows)
        if suffix != plain:
            encoded = (gzip.compress if suffix.endswith("gz") else zstandard.compress)(encoded)
        path = tmp_path / f"{count}{suffix}"
        path.write_bytes(encoded)
        del rows, encoded
        tracemalloc.start()
        read = sum(1 for _ in read_records(Source(path=str(path)), reject=stop))
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert read == count
        return peak_bytes

    peak(2_000)  # imports and caches
    assert peak(16_000) < 1.3 * peak(4_000) + 100_000
