"""An evaluation that asks a server: what is done about questions and guards that it does not answer.

In: questions, and the prompts of guards. Out: those that were answered, to be scored like any others, and what the
summary says of the rest. Trade-off: the figures of the answered ones are written, yet the stage stays unfinished until
each of the others was answered, or refused in two runs: running again asks for them alone, and what a server will never
answer (a content filter, a prompt beyond its context) does not hold the rest back for ever.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spt.artifact import dump_json, write_atomically
from spt.benchmark.question_table import QuestionTable
from spt.config import Evaluate
from spt.errors import ConfigError, InputError, WorkError
from spt.metrics import METRICS
from spt.progress import say
from spt.records import Question
from spt.score.asked import Asked, Group
from spt.score.questions import Scorer
from spt.score.server import Needs, ServerAsked, describe

FINAL = ("refused", "content_filter", "length", "no_logprobs")
"""Reasons that lie in a request: to send it again would most likely change nothing."""


def open_server(settings: Evaluate, folder: Path, processes: int, headline: str) -> ServerAsked:
    """Return the model behind the server, its answers kept in `folder`.

    Raises InputError where several processes would ask it, ConfigError where it cannot tell the headline metric.
    """
    if processes > 1:
        raise InputError(
            f"evaluate.server: {processes} processes would ask one server; run in one, and raise "
            "evaluate.server.concurrency"
        )
    asked = ServerAsked(settings, folder)
    if METRICS[headline].needs != "prediction" and asked.no_log_probabilities:
        raise ConfigError(
            f"evaluate.headline: {headline} is made of log-probabilities, and {asked.no_log_probabilities}; name "
            "another of evaluate.metrics"
        )
    # Floors depend on all questions that were answered, which may be more now; the answers themselves are kept.
    (folder / "scores.jsonl").unlink(missing_ok=True)
    return asked


def split_answered(
    asked: Asked, questions: Sequence[Question], settings: Evaluate, seed: int
) -> tuple[Sequence[Question], dict[str, str]]:
    """Return the questions that can be scored, and the reason of each other by its id; a local model answers all.

    Raises WorkError where none was answered.
    """
    lost: dict[str, str] = {}
    if not isinstance(asked, ServerAsked):
        return questions, lost
    # First each question's own texts: a target that is refused is to cost no other question its rank or floor.
    kept = _answered(asked, questions, None, lost)
    while True:
        # Ranks and floors are over the questions that were answered: with fewer of them, others may need other texts.
        count, kept = len(kept), _answered(asked, kept, Scorer(asked, kept, settings, seed).needs, lost)
        if len(kept) == count:
            return kept, lost


def _answered(
    asked: ServerAsked, questions: Sequence[Question], needs: Needs | None, lost: dict[str, str]
) -> Sequence[Question]:
    found = asked.unanswered(questions, needs)
    lost |= found
    if len(found) == len(questions):
        raise WorkError(f"{asked.client.place}: {describe(lost, 'question')}; see the server's own log")
    return QuestionTable(question for question in questions if question.id not in found) if found else questions


def lost_prompts(asked: Asked, groups: Sequence[Group]) -> dict[int, str]:
    """Return the reason of each (prompt, candidates), by its place, that a server did not answer."""
    return asked.failures(groups, len(groups), "guards") if isinstance(asked, ServerAsked) else {}


def count_reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Return how often each reason was given, by its name."""
    return dict(sorted(Counter(reasons).items()))


def server_notes(asked: Asked, lost: Mapping[str, str]) -> dict[str, Any]:
    """Return what the summary says of the server; nothing of a local model."""
    if not isinstance(asked, ServerAsked):
        return {}
    return {"unanswered": count_reasons(lost.values()), "no_log_probabilities": asked.no_log_probabilities}


def refuse_unanswered(summary: Mapping[str, Any], lost: Mapping[str, str], folder: Path) -> None:
    """Raise WorkError where another run may bring answers that this one did not get; keep which they were."""
    path = folder / "unanswered.jsonl"
    before = _refused_before(path)
    rows = (dump_json({"id": name, "reason": reason}, indent=None) + "\n" for name, reason in sorted(lost.items()))
    write_atomically(path, "".join(rows))
    guards: Counter[str] = Counter()
    for figure in (summary.get("guards") or {}).values():
        guards.update((figure or {}).get("unanswered") or {})
    again = {name for name, reason in lost.items() if reason not in FINAL or name not in before}
    if again or guards.keys() - set(FINAL):
        parts = [(len(lost), "questions", count_reasons(lost.values())), (guards.total(), "guards", guards)]
        left = " and ".join(f"{count} {what}" for count, what, _ in parts if count)
        listed = ", ".join(f"{reason} {count}" for *_, reasons in parts for reason, count in sorted(reasons.items()))
        raise WorkError(
            f"{folder / 'summary.json'} leaves out {left} that the server did not answer ({listed}); run again to ask "
            "only for these"
        )
    if lost:
        say(f"{len(lost)} questions were refused a second time: the figures leave them out, and {path} lists them")


def _refused_before(path: Path) -> set[str]:
    if not path.exists():
        return set()
    with path.open(encoding="utf-8") as file:
        return {row["id"] for row in map(json.loads, file) if row["reason"] in FINAL}
