"""Model and questions → scores: greedy answers, exact log-probabilities, fluency, perplexity."""

from spt.score.asked import Asked, LocalAsked
from spt.score.evaluate import check_evaluation, evaluate, evaluate_folder
from spt.score.lengths import refuse_too_long
from spt.score.questions import rates, score_questions, spread

__all__ = [
    "Asked",
    "LocalAsked",
    "check_evaluation",
    "evaluate",
    "evaluate_folder",
    "rates",
    "refuse_too_long",
    "score_questions",
    "spread",
]
