"""Every experiment file that ships can be read, and the default lies under one of a user's own."""

from pathlib import Path

import pytest

from spt.config import read_config
from spt.errors import ConfigError

CONFIGS = Path(__file__).parents[2] / "configs"
EXPERIMENTS = sorted(path for folder in ("demo", "person_description") for path in (CONFIGS / folder).glob("*.yaml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_shipped_experiment_can_be_read(path):
    assert read_config(path).data.train is not None


def test_the_default_lies_under_an_experiment_that_says_what_is_taught_and_asked(tmp_path):
    own = tmp_path / "mine.yaml"
    data = "{train: {path: a.jsonl}, questions: {path: q.jsonl}}"
    own.write_text(f"extends: {CONFIGS / 'spt.yaml'}\nname: mine\ndata: {data}\n")
    config = read_config(own)
    assert config.output == "runs/mine"
    assert config.data.train.path == "a.jsonl"
    assert config.permute.all_orders > {"original"}
    with pytest.raises(ConfigError, match="data: give train"):
        read_config(CONFIGS / "spt.yaml")
