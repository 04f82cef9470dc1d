"""Model and questions → scores: greedy answers, exact log-probabilities, fluency, perplexity."""

from spt.score.evaluate import check_evaluation, evaluate, evaluate_folder
from spt.score.questions import rates, score_questions, spread

__all__ = ["check_evaluation", "evaluate", "evaluate_folder", "rates", "score_questions", "spread"]
