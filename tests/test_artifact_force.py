"""What --force replaces is kept until the new output is finished, wherever the process is killed."""

import pytest

from spt.artifact import open_stage
from spt.errors import StaleError

KEY = {"train": {"epochs": 1}, "orders": ("a", "b")}


def finish(folder, **fields):
    with open_stage(folder, KEY) as stage:
        (folder / "data.txt").write_text("work")
        stage.finish(**fields)


def test_force_empties_the_folder_but_links_keep_their_targets(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    finish(tmp_path / "s")
    (tmp_path / "s" / "link").symlink_to(outside)
    (tmp_path / "s" / "parts").mkdir()
    with open_stage(tmp_path / "s", {"other": 1}, force=True) as stage:
        assert not stage.finished
        assert {entry.name for entry in stage.folder.iterdir()} <= {".lock", "key.json", ".replaced"}
        stage.finish()
        assert {entry.name for entry in stage.folder.iterdir()} <= {".lock", "key.json", "manifest.json"}
    assert (outside / "kept").exists()


def test_what_force_replaces_is_kept_until_the_new_output_is_finished(tmp_path):
    finish(tmp_path, records=3)
    old = tmp_path / ".replaced"
    with open_stage(tmp_path, {"other": 1}, force=True):
        (tmp_path / "data.txt").write_text("new work")
    assert (old / "data.txt").read_text() == "work"
    with open_stage(tmp_path, {"other": 1}) as stage:  # killed, it goes on without force
        assert not stage.finished
        assert (tmp_path / "data.txt").read_text() == "new work"
    with pytest.raises(StaleError, match=r"to replace is still in .*\.replaced"), open_stage(tmp_path, KEY):
        pass
    with open_stage(tmp_path, {"third": 1}, force=True):  # what is unfinished is nothing to keep
        assert (old / "data.txt").read_text() == "work"
        assert not (tmp_path / "data.txt").exists()
    with open_stage(tmp_path, {"third": 1}) as stage:
        stage.finish()
        assert not old.exists()


def test_killed_while_it_deletes_what_was_replaced_an_output_is_finished(tmp_path, monkeypatch):
    finish(tmp_path)
    with open_stage(tmp_path, {"other": 1}, force=True) as stage:
        monkeypatch.setattr("spt.artifact.shutil.rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            stage.finish()
        monkeypatch.undo()
    with open_stage(tmp_path, {"other": 1}) as stage:
        assert stage.finished
        assert not (tmp_path / ".replaced").exists()


@pytest.mark.parametrize("moves", range(3))
def test_killed_while_setting_aside_a_folder_is_the_old_one_or_as_forced(moves, tmp_path, monkeypatch):
    finish(tmp_path, records=3)
    rename, done = type(tmp_path).rename, []

    def kill_after(path, target):
        if len(done) == moves:
            raise KeyboardInterrupt
        done.append(rename(path, target))

    monkeypatch.setattr(type(tmp_path), "rename", kill_after)
    with pytest.raises(KeyboardInterrupt), open_stage(tmp_path, {"other": 1}, force=True):
        pass
    done.clear()
    if moves:  # killed again, while it is put back
        monkeypatch.setattr(type(tmp_path), "rename", lambda path, target: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt), open_stage(tmp_path, KEY):
            pass
    monkeypatch.undo()
    with open_stage(tmp_path, KEY) as stage:
        assert stage.finished
        assert stage.manifest["records"] == 3
        assert (tmp_path / "data.txt").read_text() == "work"
    assert not (tmp_path / ".replaced").exists()


def test_killed_while_emptying_a_folder_is_never_finished_nor_foreign(tmp_path, monkeypatch):
    with open_stage(tmp_path, KEY):
        (tmp_path / "data.txt").write_text("")
        (tmp_path / "more.txt").write_text("")
    unlink = type(tmp_path).unlink
    for survivors in (2, 1):
        calls = []

        def kill_after(path, missing_ok=False, calls=calls, survivors=survivors):
            calls.append(path)
            if len(calls) > 3 - survivors:
                raise KeyboardInterrupt
            unlink(path, missing_ok)

        monkeypatch.setattr(type(tmp_path), "unlink", kill_after)
        with pytest.raises(KeyboardInterrupt), open_stage(tmp_path, KEY, force=True):
            pass
        monkeypatch.undo()
        with open_stage(tmp_path, KEY) as stage:
            assert not stage.finished
            (tmp_path / "data.txt").write_text("")
            (tmp_path / "more.txt").write_text("")
