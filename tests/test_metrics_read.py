"""`states_fact` against a hundred answers that were read one by one; their card says by whom and how."""

import json
from pathlib import Path

import numpy as np
from statsmodels.stats.inter_rater import cohens_kappa

from spt.metrics import Answer, measure

FOLDER = Path(__file__).parents[1] / "data/read_answers"
ROWS = [json.loads(line) for line in (FOLDER / "answers.jsonl").read_text(encoding="utf-8").splitlines()]


def agreement(metric: str) -> tuple[float, float, list[str]]:
    """Return accuracy, Cohen's kappa, and the ids on which the reader and the metric disagree."""
    table = np.zeros((2, 2))
    differing = []
    for row in ROWS:
        wordings = tuple(row["wordings"])
        found = measure(Answer(row["prediction"], wordings, wordings), [metric])[metric]
        table[int(row["states_fact"]), int(found)] += 1
        if found != row["states_fact"]:
            differing.append(row["id"])
    return np.trace(table) / table.sum(), cohens_kappa(table).kappa, differing


def test_states_fact_agrees_with_the_reader_as_its_card_says() -> None:
    assert len({row["id"] for row in ROWS}) == 100
    accuracy, kappa, differing = agreement("states_fact")
    assert (accuracy, round(kappa, 2)) == (0.97, 0.93)
    assert differing == ["052", "065", "100"]
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "97 of 100 agree; Cohen's kappa 0.93" in card
    assert all(name in card for name in differing)


def test_states_fact_agrees_more_than_every_stricter_rule() -> None:
    found = {metric: agreement(metric)[0] for metric in ("states_fact", "contains", "startswith", "exact")}
    assert found == {"states_fact": 0.97, "contains": 0.96, "startswith": 0.94, "exact": 0.90}
