"""A path means the same files everywhere, and ids tell them apart."""

import io
import os
import sys

import pytest

from spt.config import Source
from spt.corpus import input_key, read_records, read_rows, stop
from spt.corpus.files import _spool_stdin, split_name
from spt.errors import CorpusError, InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("data/b/train.jsonl", "data/a/train.jsonl", "data/extra.txt", "data/.git/no.txt", "data/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"text": "x"}\n')
    return tmp_path


@pytest.mark.parametrize("path", ["data", "data/", "data/**/*", ("data/a", "data/b", "data/extra.txt")])
def test_folder_glob_and_list_give_the_same_records(path, folder):
    records = list(read_records(Source(path=path), reject=stop))
    assert [record.id for record in records] == ["a/train:1", "b/train:1", "extra:1"]
    assert records[0].source == "data/a/train.jsonl"


def test_skipped_files_are_said(folder, capsys):
    list(read_rows(Source(path="data"), stop))
    assert capsys.readouterr().err == "data: skipped 1 files of other kinds (README.md)\n"


def test_a_tilde_that_names_no_user_is_part_of_the_name(folder):
    (folder / "~draft.jsonl").write_text('{"text": "x"}\n')
    assert [record.id for record in read_records(Source(path="~draft.jsonl"), reject=stop)] == ["~draft:1"]


def test_a_file_named_twice_is_read_once(folder, capsys):
    rows = list(read_rows(Source(path=("data/b/train.jsonl", "data/*/*.jsonl")), stop))
    assert [row.place for row in rows] == ["b/train:1", "a/train:1"]
    assert "named more than once" in capsys.readouterr().err


def test_labels_differ_even_in_one_folder(tmp_path):
    for name in ("train.jsonl", "train.csv", "train.txt.gz.jsonl", "train.v2.jsonl"):
        (tmp_path / name).write_text('text\n{"text": "x"}\n'[5 if name.endswith("jsonl") else 0 :])
    places = {row.place for row in read_rows(Source(path=str(tmp_path)), stop)}
    assert places == {"train.jsonl:1", "train.csv:2", "train.txt.gz.jsonl:1", "train.v2:1"}


def test_a_name_with_glob_characters_is_a_file_first(tmp_path):
    (tmp_path / "a[1].txt").write_text("x")
    assert [row.place for row in read_rows(Source(path=str(tmp_path / "a[1].txt")), stop)] == ["a[1]:1"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("data/extr.txt", "data/extr.txt: does not exist; did you mean extra.txt? (in data)"),
        ("dta/a/train.jsonl", "does not exist, nor does dta; did you mean data? (here)"),
        ("data/zzz", "in data there is .git, README.md, a, b, extra.txt"),
        ("data/*.jsonl", "data/*.jsonl: matches no file"),
        ("data/*.md", "data/*.md: matches only README.md; give files of a known kind: .jsonl"),
        ("data/.git/empty", "in data/.git there is no.txt"),
    ],
)
def test_a_wrong_path_names_what_is_there(path, message, folder):
    for use in (input_key, lambda source: list(read_rows(source, stop))):
        with pytest.raises(InputError) as caught:
            use(Source(path=path))
        assert message in str(caught.value)


@pytest.mark.parametrize("name", ["facts.docx", "facts", "facts.parquet.gz", "facts.jsonl.bz2"])
def test_a_file_of_unknown_kind_is_unsupported(name, tmp_path):
    assert split_name(name) is None
    (tmp_path / name).write_text("x")
    with pytest.raises(CorpusError, match=r":0: unsupported: .*\.parquet"):
        list(read_rows(Source(path=str(tmp_path / name)), stop))


@pytest.mark.parametrize("name", ["/dev/zero", "pipe.jsonl"])
def test_what_never_ends_or_cannot_be_read_twice_is_refused(name, folder):
    os.mkfifo("pipe.jsonl")
    for use in (input_key, lambda source: list(read_rows(source, stop))):
        with pytest.raises(InputError, match=f"{name}: is a pipe, socket or device.*; save it to a file, or give -"):
            use(Source(path=name))


def test_standard_input_is_hashed_and_read(monkeypatch):
    data = b'{"text": "one"}\n{"text": "two"}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    _spool_stdin.cache_clear()
    key = input_key(Source(path="-"))
    records = list(read_records(Source(path="-"), reject=stop))
    assert [(record.id, record.source) for record in records] == [("stdin:1", "-"), ("stdin:2", "-")]
    assert list(key["files"]) == ["stdin.jsonl"]
    _spool_stdin().unlink()
    _spool_stdin.cache_clear()


def test_the_key_knows_contents_names_order_and_fields_but_no_place(folder, tmp_path):
    key = input_key(Source(path="data"))
    assert str(folder) not in str(key)
    os.rename("data", "moved")
    assert input_key(Source(path=str(folder / "moved"))) == key
    with open("moved/extra.txt", "a") as file:
        file.write("more")
    changed = input_key(Source(path="moved"))
    assert [name for name in key["files"] if changed["files"][name] != key["files"][name]] == ["extra.txt"]
    one, two = "moved/a/train.jsonl", "moved/b/train.jsonl"
    keys = [
        input_key(Source(path=(one, two))),
        input_key(Source(path=(two, one))),
        input_key(Source(path=(one, two), fields={"text": "body"})),
        input_key(Source(path=one)),
    ]
    assert all(keys.count(key) == 1 for key in keys)
