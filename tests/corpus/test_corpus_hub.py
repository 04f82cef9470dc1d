"""A Hub dataset is read through `datasets`, here from local folders (no network)."""

import pytest

from spt.config import Source
from spt.corpus import input_key, read_records, stop
from spt.errors import InputError


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "people"
    folder.mkdir()
    (folder / "train.csv").write_text("body,n\none,1\ntwo,2\n")
    (folder / "test.csv").write_text("body,n\nthree,3\n")
    return folder


def test_a_split_is_read_with_its_indices_as_ids(dataset):
    source = Source(hub=str(dataset), split="train", fields={"text": "body"})
    records = list(read_records(source, reject=stop))
    assert [(record.id, record.line, record.text, record.columns) for record in records] == [
        ("train:0", 1, "one", {"n": 1}),
        ("train:1", 2, "two", {"n": 2}),
    ]


def test_data_files_choose_what_is_read(dataset):
    source = Source(hub="csv", data_files=(str(dataset / "test.csv"),), fields={"text": "body"})
    assert [record.text for record in read_records(source, reject=stop)] == ["three"]


def test_a_broken_dataset_gives_its_rows_and_one_reject(dataset):
    (dataset / "train.csv").rename(dataset / "old.txt")
    (dataset / "test.csv").unlink()
    (dataset / "old.txt").rename(dataset / "a.jsonl")
    (dataset / "a.jsonl").write_text('{"text": "one"}\n{"text": \n')
    errors = []
    assert not list(read_records(Source(hub=str(dataset)), reject=errors.append))
    assert [error.reason for error in errors] == ["damaged"]


def test_a_wrong_split_says_what_to_check(dataset):
    with pytest.raises(InputError, match=r"hub dataset .*split dev.*check id, name and split"):
        list(read_records(Source(hub=str(dataset), split="dev"), reject=stop))


def test_the_key_of_local_data_is_their_contents(dataset):
    source = Source(hub=str(dataset), split="train")
    key = input_key(source)
    assert str(dataset.parent) not in str(key)
    dataset.joinpath("train.csv").write_text("body,n\nother,1\n")
    assert input_key(source) != key
    remote = input_key(Source(hub="someone/people", revision="abc", data_files="a.csv"))
    assert (remote["hub"], remote["revision"], remote["data_files"]) == ("someone/people", "abc", "a.csv")
