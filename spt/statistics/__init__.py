"""Scores → figures with intervals, floors, and tests between directions and between runs.

In: scores, and for the floor questions. Out: plain numbers, the same whatever the order of what came in. The unit of
chance is the *fact*: questions of one fact stand and fall together. Trade-off: everything is computed from totals of
facts held in memory, two numbers a fact and metric.
"""

from spt.statistics.bootstrap import DRAWS, bootstrap_mean
from spt.statistics.floor import Floors
from spt.statistics.permutation import holm
from spt.statistics.summary import summarise, tested

__all__ = ["DRAWS", "Floors", "bootstrap_mean", "holm", "summarise", "tested"]
