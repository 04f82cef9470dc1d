"""A stage's folder is reused, continued or refused, and never half written."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spt.artifact
import spt.config
import spt.errors
from spt.artifact import (
    changed_keys,
    dump_json,
    hash_code,
    hash_file,
    open_stage,
    versions,
    write_atomically,
)
from spt.errors import DamagedError, InputError, StaleError

KEY = {"train": {"epochs": 1}, "orders": ("a", "b")}


def finish(folder, key=KEY, **fields):
    with open_stage(folder, key) as stage:
        (folder / "data.txt").write_text("work")
        stage.finish(**fields)


def test_a_finished_stage_is_reused(tmp_path):
    finish(tmp_path / "s", records=3)
    with open_stage(tmp_path / "s", KEY) as stage:
        assert stage.finished
        assert stage.manifest == {"key": {"train": {"epochs": 1}, "orders": ["a", "b"]}, "records": 3}


def test_an_unfinished_stage_continues_with_its_files(tmp_path):
    with open_stage(tmp_path / "s", KEY):
        (tmp_path / "s" / "part").write_text("half")
    with open_stage(tmp_path / "s", KEY) as stage:
        assert not stage.finished
        assert (tmp_path / "s" / "part").read_text() == "half"


def test_another_key_is_refused_naming_what_changed(tmp_path):
    finish(tmp_path)
    with pytest.raises(StaleError) as caught, open_stage(tmp_path, {"train": {"epochs": 2, "seed": None}, "new": 1}):
        pass
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert lines[1:-1] == [
        "new: absent -> 1",
        'orders: ["a", "b"] -> absent',
        "train.epochs: 1 -> 2",
        "train.seed: absent -> null",
    ]
    assert "--force" in lines[-1]
    assert (tmp_path / "data.txt").read_text() == "work"


def test_a_folder_with_foreign_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StaleError, match="did not write"), open_stage(tmp_path, KEY):
        pass
    assert (tmp_path / "thesis.tex").exists()


def test_a_path_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "s").write_text("")
    with (
        pytest.raises(InputError, match=r"cannot be made or written to \(File exists\)"),
        open_stage(tmp_path / "s", KEY),
    ):
        pass


OPEN_BY_FORCE = """
import sys
from pathlib import Path
from spt.artifact import open_stage
with open_stage(Path(sys.argv[1]), {}, force=True):
    pass
"""


def test_a_second_writer_is_refused_while_the_first_works(tmp_path):
    with open_stage(tmp_path, KEY):
        command = [sys.executable, "-c", OPEN_BY_FORCE, str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True)
        assert "another process is writing here" in second.stderr
        assert (tmp_path / "key.json").exists()
    with open_stage(tmp_path, KEY):
        pass


def test_a_writer_that_is_done_holds_nothing_though_its_lock_is_remembered(tmp_path, monkeypatch):
    locks, make = [], spt.artifact.FileLock
    monkeypatch.setattr(spt.artifact, "FileLock", lambda path: locks.append(make(path)) or locks[-1])
    finish(tmp_path)
    assert [lock.is_locked for lock in locks] == [False]


def test_a_writer_killed_before_its_key_leaves_a_folder_that_can_be_opened(tmp_path):
    (tmp_path / ".lock").write_text("")
    (tmp_path / ".key.json.123.tmp").write_text("{")
    finish(tmp_path)
    assert not (tmp_path / ".key.json.123.tmp").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_key_or_manifest_says_what_to_do(content, tmp_path):
    finish(tmp_path)
    (tmp_path / "manifest.json").write_bytes(content)
    with open_stage(tmp_path, KEY) as stage, pytest.raises(DamagedError, match="--force"):
        stage.manifest  # noqa: B018  # read for what it raises
    (tmp_path / "key.json").write_bytes(content)
    with pytest.raises(DamagedError, match="--force"), open_stage(tmp_path, KEY):
        pass
    with open_stage(tmp_path, KEY, force=True) as stage:
        assert not stage.finished


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file.json"
    write_atomically(path, "old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert [(entry.name, entry.read_text()) for entry in path.parent.iterdir()] == [("file.json", "old")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", max_size=2), inner),
    max_leaves=8,
)


@settings(max_examples=50)
@given(value=st.dictionaries(st.text("abc", max_size=3), JSON), order=st.randoms())
def test_equal_values_give_equal_text(value, order):
    names = list(value)
    order.shuffle(names)
    assert dump_json({name: value[name] for name in names}) == dump_json(value)
    assert json.loads(dump_json(value)) == value


@settings(max_examples=50)
@given(old=st.dictionaries(st.text("ab.", max_size=3), JSON), new=st.dictionaries(st.text("ab.", max_size=3), JSON))
def test_keys_that_differ_always_name_a_change(old, new):
    assert bool(changed_keys(old, new)) == (dump_json(old) != dump_json(new))


def test_not_a_number_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"loss": float("nan")})


def test_code_is_known_by_its_text_and_its_file_names(tmp_path, monkeypatch):
    assert hash_code(spt.errors) != hash_code(spt.config)
    package = tmp_path / "made_for_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import made_for_test

    before = hash_code(made_for_test)
    (package / "a.py").rename(package / "b.py")
    renamed = hash_code(made_for_test)
    (package / "b.py").write_text("x = 2\n")
    assert len({before, renamed, hash_code(made_for_test)}) == 3


def test_a_file_is_known_by_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert hash_file(tmp_path / "a").startswith("ba7816bf")
    assert versions("pytest")["pytest"] == pytest.__version__
