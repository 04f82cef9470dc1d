"""A model that can be asked, wherever it lives.

In: prompts as text. Out: continuations, and log-probabilities of given ones. Trade-off: texts and not token ids go in,
since a server takes no others; what a prompt becomes in tokens is the business of each kind.
"""

from collections.abc import Sequence
from reprlib import repr as shortened
from typing import Any, Protocol

from spt.config import Evaluate
from spt.encode import frame_of
from spt.errors import ModelError
from spt.model import check_positions
from spt.model.attention import fit_attention
from spt.model.source import first_line
from spt.score.generate import generate, prompt_ids
from spt.score.likelihood import group_log_probabilities

Group = tuple[str, Sequence[str]]


class Asked(Protocol):
    """A model that answers."""

    @property
    def has_log_probabilities(self) -> bool:
        """Return whether it can tell how likely a given continuation is."""

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int) -> list[str]:
        """Return the greedy continuation of each prompt."""

    def log_probabilities(self, groups: Sequence[Group]) -> list[list[tuple[float, int]]]:
        """Return (nats, tokens) of each candidate after its prompt, for groups of (prompt, candidates)."""


class LocalAsked:
    """A model in this process, with its tokenizer."""

    has_log_probabilities = True

    def __init__(self, model: Any, tokenizer: Any, settings: Evaluate) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        fit_attention(model, packing=False)  # on a CPU, bfloat16 answers a third faster through it
        if settings.chat_template:
            require_template(tokenizer)

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int) -> list[str]:
        """Return the greedy continuation of each prompt."""
        ids = prompt_ids(self.tokenizer, [self.framed(prompt) for prompt in prompts])
        longest, prompt = max(zip(map(len, ids), prompts, strict=True), default=(0, ""))
        what = f"the prompt {shortened(prompt)} with evaluate.max_new_tokens"
        check_positions(self.model, longest + max_new_tokens, what)
        return generate(
            self.model,
            self.tokenizer,
            ids,
            max_new_tokens=max_new_tokens,
            batch_size=self.settings.batch_size,
            batch_tokens=self.settings.batch_tokens,
        )

    def log_probabilities(self, groups: Sequence[Group]) -> list[list[tuple[float, int]]]:
        """Return (nats, tokens) of each candidate after its prompt, which is computed once a group."""
        framed = [(self.framed(prompt), candidates) for prompt, candidates in groups]
        return group_log_probabilities(
            self.model,
            self.tokenizer,
            framed,
            self.settings.batch_size,
            self.settings.batch_tokens,
            templated=self.settings.chat_template,
        )

    def framed(self, prompt: str) -> str:
        """Return what the model reads before it answers."""
        return framed(self.tokenizer, prompt, chat_template=self.settings.chat_template)


def require_template(tokenizer: Any) -> None:
    """Raise ModelError for a tokenizer without a chat template."""
    if not tokenizer.chat_template:
        raise ModelError(
            f"{tokenizer.name_or_path}: the tokenizer has no chat template; set evaluate.chat_template: false, or "
            "ask an instruct model"
        )


def framed(tokenizer: Any, prompt: str, *, chat_template: bool) -> str:
    """Return a prompt as it is, or as a user's turn in the tokenizer's chat template, up to where the answer begins."""
    if not chat_template:
        return prompt
    try:
        rendered = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
    except Exception as error:  # a template raises what it likes
        raise ModelError(
            f"{tokenizer.name_or_path}: the chat template refuses a user's turn ({first_line(error)}); set "
            "evaluate.chat_template: false"
        ) from error
    # Most templates write the beginning token themselves; where the tokenizer adds it too, one is enough.
    begins = bool(frame_of(tokenizer).prefix) and tokenizer.bos_token
    return str(rendered).removeprefix(tokenizer.bos_token if begins else "")
