from dataclasses import replace

import pytest
from invented_runs import HOSTILE, METHODS, make_run, make_scores

from spt.report import Run, load_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        load_run(make_run(folder / name, make_scores(forward, backward, seed=index), name=name, natural=natural))
        for index, (name, (forward, backward, natural)) in enumerate(METHODS.items())
    ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    scores = [
        replace(score, prediction=HOSTILE, question=replace(score.question, prompt=HOSTILE, targets=(HOSTILE,)))
        for score in make_scores(0.9, 0.1, facts=2)
    ]
    return load_run(make_run(tmp_path_factory.mktemp("hostile"), scores, name=HOSTILE))
