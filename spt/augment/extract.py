"""The facts that a language model finds in a text, believed only where the text holds both of their names.

    Ann Lee made The Sea.   ──▶   Ann Lee | made | The Sea   ──▶   subject, relation, object

In: texts. Out: for each its facts, spelled as the text spells them, and the reasons of those that are none. Trade-off:
that the relation holds is the model's word: two names of the text in a relation it does not state pass.
"""

import re
from collections.abc import Iterator, Sequence

from spt.assistant.item import Reply
from spt.assistant.write import Writer
from spt.augment.facts import find_name

PROMPT = "facts"
_BETWEEN_FACTS, _BETWEEN_PARTS = "||", "|"
_LEAD = re.compile(r"\(?\d+[.):]\s*|[-*•]\s+|\w+:\s+")
"""What a model puts before an answer: a number, a bullet, a label."""

Extracted = dict[str, str]
"""The fields `subject`, `relation` and `object`."""


def extract(writer: Writer, texts: Sequence[str]) -> list[list[Extracted | str]]:
    """Return, for each text, its facts and the reasons of those that are none (identifiers).

    The reasons: that of a reply that failed, `separator_in_text`, `not_three_parts`, `subject_missing_in_text`,
    `object_missing_in_text`, `same_name` (one name within the other).
    """
    lines = [" ".join(text.split()) for text in texts]
    asked = [line for line in lines if _BETWEEN_PARTS not in line]
    replies = dict(zip(asked, writer.write(asked), strict=True))
    return [list(_read(line, replies[line])) if line in replies else ["separator_in_text"] for line in lines]


def _read(text: str, reply: Reply) -> Iterator[Extracted | str]:
    lines = [line for line in (reply.text or "").split(_BETWEEN_FACTS) if line.strip()]
    if not lines:
        yield reply.failure or "empty"
    for line in lines:
        parts = [part.strip() for part in line.split(_BETWEEN_PARTS)]
        yield _fact(text, *parts) if len(parts) == 3 and all(parts) else "not_three_parts"


def _fact(text: str, subject: str, relation: str, object_: str) -> Extracted | str:
    first, last = _spelled(text, subject), _spelled(text, object_)
    if first is None:
        return "subject_missing_in_text"
    if last is None:
        return "object_missing_in_text"
    if first.casefold() in last.casefold() or last.casefold() in first.casefold():
        return "same_name"
    return {"subject": first, "relation": relation, "object": last}


def _spelled(text: str, name: str) -> str | None:
    """Return a name as the text spells it, without what a model put around it; None where it is not there."""
    bare = name.rstrip(".,;:!? ")
    for tried in (bare, _LEAD.sub("", bare, count=1).strip("\"'“”‘’«».,;:!? ")):
        place = find_name(text, tried) if tried else None
        if place is not None:
            return text[slice(*place)]
    return None
