"""Questions that a model is too short for, told before any is asked.

In: a model in this process and all questions. Out: nothing, or an error that names them. Trade-off: only what each
question surely needs is looked at, its prompt with an answer and its own texts; a text of another's that makes its rank
or floor is found too long when it is tried.
"""

from collections.abc import Iterator, Sequence
from reprlib import repr as shortened
from typing import Any

from spt.config import Evaluate
from spt.errors import ModelError
from spt.model import positions_of
from spt.progress import track
from spt.records import Question
from spt.score.asked import framed
from spt.score.generate import prompt_ids
from spt.score.likelihood import continuation_examples


def refuse_too_long(model: Any, tokenizer: Any, questions: Sequence[Question], settings: Evaluate) -> None:
    """Raise ModelError where questions do not fit a model's positions."""
    limit = positions_of(model)
    if limit is None:
        return
    found: list[tuple[str, str, int]] = []
    with track("lengths", len(questions), "questions") as bar:
        for question in questions:
            found += ((question.id, *rest) for rest in _beyond(tokenizer, question, settings, limit))
            bar.advance()
    if found:
        raise ModelError(_told(found, limit))


def _beyond(tokenizer: Any, question: Question, settings: Evaluate, limit: int) -> Iterator[tuple[str, int]]:
    """Yield (what, tokens) for the first of a question's texts that is too long."""
    templated, room = settings.chat_template, settings.max_new_tokens
    prompt = framed(tokenizer, question.prompt, chat_template=templated)
    texts = (*question.targets, *question.distractors)
    # No tokenizer makes more than four tokens, bytes, of a character, and a few special ones: most need no encoding.
    if 4 * (len(prompt) + max(map(len, texts)) + 4) + room <= limit:
        return
    (ids,) = prompt_ids(tokenizer, [prompt])
    wanted = [(f"the prompt {shortened(question.prompt)} with evaluate.max_new_tokens", len(ids) + room)]
    examples = continuation_examples(tokenizer, [(prompt, text) for text in texts], templated=templated)
    for text, example in zip(texts, examples, strict=True):
        wanted.append((f"the answer {shortened(text)} after its prompt", len(example.input_ids)))
    yield from [one for one in wanted if one[1] > limit][:1]


def _told(found: Sequence[tuple[str, str, int]], limit: int) -> str:
    (first, what, tokens), *rest = found
    named = ", ".join(repr(name) for name, *_ in rest[:5]) + ", ..." * (len(rest) > 5)
    more = f"; {len(rest)} more too long: {named}" if rest else ""
    return (
        f"question {first!r}: {what}: {tokens} tokens, but the model has {limit} positions{more}. Shorten them, leave "
        "them out, or give a smaller evaluate.max_new_tokens"
    )
