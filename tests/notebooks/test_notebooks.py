"""The notebooks run from top to bottom, on a small setting, from nothing."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


# nbclient and jupyter warn of event loops and path settings that are theirs.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_the_curse_and_the_cure_makes_its_artifacts_and_plots_both(tmp_path, monkeypatch):
    small = "--set train.epochs=1 --set train.eval_steps=10 --set evaluate.fluency_samples=8 --set evaluate.limit=24"
    monkeypatch.setenv("SPT_DEMO", str(tmp_path / "demo"))
    monkeypatch.setenv("SPT_DEMO_METHODS", "baseline rotation-order-tag")
    monkeypatch.setenv("SPT_DEMO_SET", small)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(ROOT / "notebooks/01_the_curse_and_the_cure.ipynb", as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(ROOT / "notebooks")}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    report = json.loads((tmp_path / "demo/report.json").read_text())
    assert [run["name"] for run in report["runs"]] == ["baseline", "rotation-order-tag"]
