"""An evaluation that asks a server: what is done about questions that it does not answer.

In: questions. Out: those that were answered, to be scored like any others, and what the summary says of the rest.
Trade-off: the figures of the answered ones are written, yet the stage stays unfinished, so that running again asks for
the others and nobody takes a part for the whole.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spt.config import Evaluate
from spt.errors import InputError, WorkError
from spt.records import Question
from spt.score.asked import Asked
from spt.score.server import ServerAsked, describe


def open_server(settings: Evaluate, folder: Path, processes: int) -> ServerAsked:
    """Return the model behind the server, its answers kept in `folder`.

    Raises InputError where several processes would ask it.
    """
    if processes > 1:
        raise InputError(
            f"evaluate.server: {processes} processes would ask one server; run in one, and raise "
            "evaluate.server.concurrency"
        )
    # Floors depend on all questions that were answered, which may be more now; the answers themselves are kept.
    (folder / "scores.jsonl").unlink(missing_ok=True)
    return ServerAsked(settings, folder)


def split_answered(asked: Asked, questions: Sequence[Question]) -> tuple[Sequence[Question], dict[str, Any]]:
    """Return the questions that can be scored, and what the summary says of the server; nothing of a local model.

    Raises WorkError where none was answered.
    """
    if not isinstance(asked, ServerAsked):
        return questions, {}
    failures = asked.unanswered(questions)
    kept = [question for question in questions if question.id not in failures]
    if not kept:
        raise WorkError(f"{asked.client.place}: {describe(failures)}; see the server's own log")
    counts = dict(sorted(Counter(failures.values()).items()))
    return kept, {"unanswered": counts, "no_log_probabilities": asked.no_log_probabilities}


def refuse_unanswered(notes: Mapping[str, Any], folder: Path) -> None:
    """Raise WorkError where some questions were not answered."""
    counts = notes.get("unanswered")
    if counts:
        listed = ", ".join(f"{reason} {count}" for reason, count in counts.items())
        raise WorkError(
            f"{folder / 'summary.json'} leaves out {sum(counts.values())} questions that the server did not answer "
            f"({listed}); run again to ask only for these"
        )
