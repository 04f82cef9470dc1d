"""The sentences a benchmark's own templates can make, as a grammar that accepts or refuses a text.

In: rules from `benchmark.json`, a mapping of symbols to alternatives in which `{symbol}` stands for a symbol;
`sentence` is the start. Out: whether a text is one whole sentence in natural word order (the fluency figure
`natural_order`). Trade-off: a sentence is split at the fixed text between its slots, so that text may stand in no
slot's value.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from spt.errors import QuestionError

START = "sentence"
_SYMBOL = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Grammar:
    """Rules without recursion: each symbol's alternatives.

    Raises QuestionError for a rule that names no symbol, or leads back to itself.
    """

    rules: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        """Refuse rules that do not end in text."""
        self._check(START, ())

    def _check(self, symbol: str, above: tuple[str, ...]) -> None:
        if symbol in above:
            raise QuestionError(
                f"grammar: {' -> '.join((*above, symbol))} leads back to itself; rules cannot be recursive"
            )
        if not self.rules.get(symbol):
            known = ", ".join(sorted(self.rules))
            raise QuestionError(f"grammar: no alternatives for {symbol!r}; add a rule, or use one of {known}")
        for inner in sorted({name for text in self.rules[symbol] for name in _SYMBOL.findall(text)}):
            self._check(inner, (*above, symbol))

    def accepts(self, text: str) -> bool:
        """Return whether the whole text, white space around it aside, is a sentence of the grammar."""
        text = text.strip()
        for template, symbols in self._templates:
            match = template.fullmatch(text)
            if match and all(
                self._slots[name].fullmatch(part) for name, part in zip(symbols, match.groups(), strict=True)
            ):
                return True
        return False

    @cached_property
    def _templates(self) -> list[tuple[re.Pattern[str], list[str]]]:
        return [
            (re.compile(_translate(sentence, lambda _: "(.+)")), _SYMBOL.findall(sentence))
            for sentence in self.rules[START]
        ]

    @cached_property
    def _slots(self) -> dict[str, re.Pattern[str]]:
        used = {name for _, symbols in self._templates for name in symbols}
        return {name: re.compile(self._pattern(name)) for name in used}

    def _pattern(self, symbol: str) -> str:
        return f"(?:{'|'.join(_translate(text, self._pattern) for text in self.rules[symbol])})"


def _translate(text: str, value: Callable[[str], str]) -> str:
    # re.split with one group: literal, symbol, literal, symbol, ..., literal.
    parts = _SYMBOL.split(text)
    return "".join(value(part) if index % 2 else re.escape(part) for index, part in enumerate(parts))


def expand(rules: Mapping[str, Sequence[str]], symbol: str) -> Iterator[str]:
    """Yield every text that a symbol stands for, in the order of the rules."""
    for text in rules[symbol]:
        parts = _SYMBOL.split(text)
        choices = [list(expand(rules, part)) if index % 2 else [part] for index, part in enumerate(parts)]
        yield from ("".join(chosen) for chosen in product(*choices))


def fill(text: str, value: Callable[[str], str]) -> str:
    """Return `text` with each `{symbol}` replaced by `value(symbol)`, from left to right."""
    return _SYMBOL.sub(lambda match: value(match[1]), text)
