from pathlib import Path

import pytest
from invented_cells import HOSTILE, METHODS, make_comparison

from spt.compare.columns import Json
from spt.compare.write import write_comparison

STATES = {
    ("fim", 2): ("failed", "train: NonFiniteError: the loss is nan at step 40"),
    ("bico", 1): ("waiting", None),
    **{("identity-bridge", seed): ("failed", "the corpus has no fields") for seed in range(3)},
}


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Json]:
    """Seventeen methods of three seeds, some of whose cells are missing."""
    folder = make_comparison(tmp_path_factory.mktemp("whole"), METHODS, states=STATES)
    return folder, write_comparison(folder)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Json]:
    methods = {"baseline": (0.9, 0.1, 0.9), HOSTILE: (0.9, 0.8, 0.9)}
    states = {(HOSTILE, 1): ("failed", HOSTILE)}
    folder = make_comparison(
        tmp_path_factory.mktemp("hostile"), methods, experiments=(HOSTILE,), seeds=(0, 1), states=states, facts=4,
        name=HOSTILE,
    )  # fmt: skip
    return folder, write_comparison(folder)
