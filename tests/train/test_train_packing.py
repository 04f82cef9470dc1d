"""Packing is layout only: the same steps, the same counts, the same losses."""

import pytest
from experiment import log, manifest, write_experiment

from spt.config import read_config
from spt.preprocess import preprocess
from spt.train import train


def test_packing_changes_neither_the_losses_nor_what_a_step_holds(tmp_path):
    settings = {"eval_steps": None, "dataloader_num_workers": 0}
    runs = []
    for packing in (False, True):
        path = write_experiment(tmp_path / str(packing), train={**settings, "packing": packing})
        preprocess(read_config(path))
        train(read_config(path))
        runs.append(tmp_path / str(packing) / "run")
    padded, packed = ([row for row in log(run) if "loss" in row] for run in runs)
    assert len(packed) == 20
    assert [row["loss"] for row in packed] == pytest.approx([row["loss"] for row in padded], abs=1e-5)
    assert [row["target_tokens"] for row in packed] == [row["target_tokens"] for row in padded]
    counts = [manifest(run)["target_tokens"] for run in runs]
    assert counts[0] == counts[1]
