"""How right an answer is: every metric, its rule in one line, and its floor.

In: a prediction, the log-probabilities of its targets, their rank, as far as they were computed. Out: numbers by name.
Trade-off: `rouge-score` and `sacrebleu` do what they are known for, on words of ours, so that every script has words.
"""

from spt.metrics.rank import Candidates, Group, candidates, rank_targets
from spt.metrics.table import METRICS, Answer, Metric, Others, measure, measure_floors

__all__ = [
    "METRICS",
    "Answer",
    "Candidates",
    "Group",
    "Metric",
    "Others",
    "candidates",
    "measure",
    "measure_floors",
    "rank_targets",
]
