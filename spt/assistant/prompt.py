"""Prompts as files: an instruction, a separator, examples with units.

In: the name of a bundled prompt, or a path. Out: a `Prompt`, as chat messages or as plain text for a model without a
chat template. Trade-off: an example is written once, with its units; what the user would have sent is made from it.
"""

from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import field_validator

from spt.config.read import check_values
from spt.config.values import Section
from spt.config.yaml_text import parse_yaml
from spt.errors import ConfigError

Message = dict[str, str]


class Bundled(Section):
    """A prompt of some kind; the bundled ones of a kind lie in its `folder`."""

    folder: ClassVar[str]


Kind = TypeVar("Kind", bound=Bundled)


class Prompt(Bundled):
    """What an assistant is told: `instruction` to copy a sentence; `listing` and `request` to list sentences (score).

    `separator` stands before the white space of the next unit.
    """

    folder: ClassVar[str] = "prompts"

    instruction: str
    listing: str
    request: str
    separator: str = " |"
    examples: tuple[str, ...]

    @field_validator("separator")
    @classmethod
    def _visible(cls, separator: str) -> str:
        if not separator.strip() or "\n" in separator:
            raise ValueError('must hold a visible sign and no line break, such as " |"')
        return separator

    @field_validator("examples")
    @classmethod
    def _some(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        if not texts or not all(text.strip() and "\n" not in text for text in texts):
            raise ValueError("must hold at least one sentence, each on one line")
        return texts

    @property
    def mark(self) -> str:
        """Return the separator without its white space."""
        return self.separator.strip()

    @cached_property
    def demonstrations(self) -> tuple[tuple[str, str], ...]:
        """Return (sentence, sentence with separators) for each example."""
        return tuple((example.replace(self.separator, ""), example) for example in self.examples)

    def messages(self, sentence: str) -> list[Message]:
        """Return the chat: the instruction, the examples as turns, the sentence."""
        turns = [{"role": "system", "content": self.instruction}]
        for plain, cut in self.demonstrations:
            turns += [{"role": "user", "content": plain}, {"role": "assistant", "content": cut}]
        return [*turns, {"role": "user", "content": sentence}]

    def list_messages(self) -> list[Message]:
        """Return the chat that asks for a list of sentences with units; `listed` begins the answer."""
        return [{"role": "system", "content": self.listing}, {"role": "user", "content": self.request}]

    @property
    def listed(self) -> str:
        """Return the examples as the lines of a list, the next line still to come."""
        return "".join(f"{cut}\n" for cut in self.examples)

    def plain(self, sentence: str) -> str:
        """Return the same as one text, for a model without a chat template; the reply is one line."""
        shown = "".join(f"Sentence:\n{plain}\nUnits:\n{cut}\n\n" for plain, cut in self.demonstrations)
        return f"{self.instruction}\n\n{shown}Sentence:\n{sentence}\nUnits:\n"


def read_prompt(name: str, kind: type[Kind] = Prompt) -> Kind:  # type: ignore[assignment]  # PEP 696 is not in 3.11
    """Return the bundled prompt called `name`, or the one in the file `name`, as a prompt of its kind.

    Raises ConfigError.
    """
    folder = resources.files("spt.assistant").joinpath(kind.folder)
    bundled = folder / f"{name}.yaml"
    path = Path(name)
    if name.isidentifier() and bundled.is_file():
        text = bundled.read_text(encoding="utf-8")
    elif path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        known = ", ".join(sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.is_file()))
        raise ConfigError(f"segment.assistant.prompt: {name!r} is neither a file nor one of {known}")
    return check_values(parse_yaml(text, name), kind, name)
