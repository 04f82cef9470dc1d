"""Answers during training: which step answered best so far, and when to stop looking.

In: the model at a step. Out: rates by direction and metric, and whether they are the best yet, kept in the checkpoint's
state, so that a resumed run goes on counting. Trade-off: it looks at questions, not at a loss: the loss falls while the
curse stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelerate import Accelerator

from spt.benchmark.questions import read_questions
from spt.checkpoint import State
from spt.config import Config, Evaluate
from spt.errors import ConfigError
from spt.records import DIRECTIONS, Question
from spt.score import LocalAsked, rates, score_questions, spread
from spt.statistics import tested

Rates = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Best:
    """A metric of one direction, such as `reversed.exact`; more is better. `patience`: evaluations without a gain."""

    direction: str
    metric: str
    patience: int | None

    def note(self, state: State, found: Rates) -> bool:
        """Return whether these rates are the best yet, and keep them in the state if so.

        Raises ConfigError where no question has that metric.
        """
        value = found[self.direction].get(self.metric)
        if value is None:
            raise ConfigError(
                f"train.metric_for_best_model: {self.direction} questions lack {self.metric} (choice needs distractors)"
            )
        gained = state.best is None or value > state.best
        state.stale_evaluations = 0 if gained else state.stale_evaluations + 1
        if gained:
            state.best, state.best_step = value, state.step
        return gained

    def exhausted(self, state: State) -> bool:
        """Return whether `patience` evaluations in a row brought no gain."""
        return self.patience is not None and state.stale_evaluations >= self.patience


@dataclass(frozen=True)
class Watch:
    """The questions asked during training, every `every` steps, and what is watched on them (None: nothing).

    `among` is the whole set they are of.
    """

    questions: Sequence[Question]
    among: Sequence[Question]
    settings: Evaluate
    every: int
    best: Best | None

    def ask(self, model: Any, tokenizer: Any, accelerator: Accelerator) -> Rates:
        """Return the rates of a model, the same on every rank."""
        asked = LocalAsked(model, tokenizer, self.settings)
        return rates(score_questions(asked, self.questions, self.settings, among=self.among, accelerator=accelerator))

    def exhausted(self, state: State) -> bool:
        """Return whether training should stop early."""
        return self.best is not None and self.best.exhausted(state)


def make_watch(config: Config) -> Watch | None:
    """Return what is asked during training (None: nothing).

    Raises QuestionError, ConfigError for a metric that is not measured on these questions.
    """
    if config.data.questions is None or config.train.eval_steps is None:
        return None
    known = read_questions(config.data.questions)
    whole = tested(known.questions)
    chosen = spread(whole, config.train.eval_questions)
    best = _make_best(config, config.evaluate.headline or known.headline, {q.direction for q in chosen})
    # A curve has no floors, and those of log-probabilities cost the model a pass over 32 answers a question.
    settings = config.evaluate.model_copy(update={"floor_targets": 0})
    return Watch(chosen, whole, settings, config.train.eval_steps, best)


def _make_best(config: Config, headline: str, directions: set[Any]) -> Best | None:
    train = config.train
    if not (train.metric_for_best_model or train.early_stopping_patience or train.load_best_model_at_end):
        return None
    name = train.metric_for_best_model or f"reversed.{headline}"
    direction, _, metric = name.partition(".")
    if direction not in directions or metric not in config.evaluate.metrics:
        asked = ", ".join(d for d in DIRECTIONS if d in directions)
        raise ConfigError(
            f"train.metric_for_best_model: {name!r} is not measured; give DIRECTION.METRIC with a direction the "
            f"questions ask ({asked}) and a metric of evaluate.metrics ({', '.join(config.evaluate.metrics)})"
        )
    return Best(direction, metric, train.early_stopping_patience)
