"""The log goes to `metrics.jsonl` and to trackers alike; wrong trackers are refused before anything is trained."""

import json
import shutil
from typing import ClassVar

import accelerate.tracking
import pytest
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker
from experiment import log, write_experiment

from spt.config import read_config
from spt.errors import InputError, MissingError
from spt.preprocess import preprocess
from spt.train import train
from spt.train.log import Log, trackers_of


class Kept(GeneralTracker):
    """A tracker that keeps what it is given."""

    name, requires_logging_directory = "kept", True
    made: ClassVar[list] = []

    def __init__(self, run_name, logging_dir):
        super().__init__()
        self.run_name, self.folder, self.rows, self.settings, self.closed = run_name, logging_dir, [], {}, False
        self.made.append(self)

    @property
    def tracker(self):
        return self

    def store_init_configuration(self, values):
        self.settings = values

    def log(self, values, step=None, **_):
        self.rows.append((step, values))

    def finish(self):
        self.closed = True


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setitem(accelerate.tracking.LOGGER_TYPE_TO_CLASS, "kept", Kept)
    monkeypatch.setattr("spt.train.log.get_available_trackers", lambda: ["kept"])
    monkeypatch.setattr(Kept, "made", [])
    return Kept.made


def asking(folder, report_to, **train_settings):
    return read_config(write_experiment(folder, train={"report_to": report_to, **train_settings}))


@pytest.mark.parametrize("given", ["Tensorboard", ["none", "kept"], "all"])
def test_an_unknown_tracker_is_refused_with_the_names_allowed(tmp_path, kept, given):
    with pytest.raises(InputError, match=r"train\.report_to: .* a list of aim, .*, kept, .*tensorboard, .*wandb"):
        trackers_of(asking(tmp_path, given))


def test_a_tracker_that_is_not_installed_is_refused_before_training_with_the_command(tmp_path, kept):
    config = asking(tmp_path, ["kept", "comet_ml"])
    preprocess(config)
    with pytest.raises(MissingError, match=r"comet_ml is not installed; pip install comet-ml"):
        train(config)
    assert not (tmp_path / "run/train/tokenizer").exists()


def test_trackers_get_the_numbers_of_the_log_and_a_resumed_run_goes_on_with_its_steps(tmp_path, kept):
    config = asking(tmp_path, "kept", epochs=2, eval_steps=4)
    preprocess(config)
    train(config)
    (tracker,) = kept
    assert (tracker.run_name, tracker.folder) == ("tiny", str(tmp_path / "run/train/trackers"))
    assert tracker.settings["train.batch_size"] == 12
    assert tracker.settings["permute.orders.rotated"] == 1
    assert tracker.closed
    rows = [json.loads(line) for line in (tmp_path / "run/train/metrics.jsonl").read_text().splitlines()]
    for row, (step, values) in zip(rows, tracker.rows, strict=True):
        assert step == row["step"]
        assert values.get("loss") == row.get("loss")
        assert all(isinstance(value, int | float) for value in values.values())
    assert tracker.rows[0][1]["throughput/tokens_per_second"] == rows[0]["throughput"]["tokens_per_second"]
    assert tracker.rows[4][1]["evaluate/forward/exact"] == rows[4]["evaluate"]["forward"]["exact"]

    whole, run = log(tmp_path / "run"), tmp_path / "run/train"
    (run / "manifest.json").unlink()
    shutil.rmtree(sorted((run / "checkpoints").iterdir())[-1])
    train(config)
    assert log(tmp_path / "run") == whole
    assert [step for step, _ in kept[1].rows] == [row["step"] for row in whole if row["step"] > 6]


def test_tensorboard_shows_the_scalars_of_the_log(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = asking(tmp_path, "tensorboard")
    folder = tmp_path / "run/train"
    folder.mkdir(parents=True)
    entries = Log.start(config, folder, Accelerator(cpu=True))
    entries.write(10, epoch=0.5, loss=2.5, evaluate={"reversed": {"exact": 0.25}}, throughput={"mfu": None})
    entries.write(20, epoch=1.0, loss=1.5)
    entries.finish()
    events = accumulator.EventAccumulator(str(folder / "trackers/tiny")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(10, 2.5), (20, 1.5)]
    assert [event.value for event in events.Scalars("evaluate/reversed/exact")] == [0.25]
    assert "throughput/mfu" not in events.Tags()["scalars"]


def test_without_trackers_nothing_but_the_log_is_written(tmp_path):
    folder = tmp_path / "run/train"
    folder.mkdir(parents=True)
    entries = Log.start(asking(tmp_path, "none"), folder, Accelerator(cpu=True))
    entries.write(1, epoch=0.1, loss=0.5)
    entries.finish()
    assert [path.name for path in folder.iterdir()] == ["metrics.jsonl"]
    assert json.loads((folder / "metrics.jsonl").read_text()) == {"step": 1, "epoch": 0.1, "loss": 0.5}
