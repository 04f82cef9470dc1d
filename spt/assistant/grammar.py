"""Item → a grammar (GBNF, llama.cpp's) that allows its copies alone: at each boundary the separator, or not.

In: an item, a separator. Out: grammar text. Trade-off: only servers that take the `grammar` field can be held to it; a
probe finds out, since others ignore the field without a word.
"""

from spt.assistant.item import Item

PROBE = "held to a grammar"
"""What no model would say by itself."""


def copy_grammar(item: Item, separator: str) -> str:
    """Return the grammar of all copies of an item."""
    optional = f" ({_literal(separator)})? "
    return "root ::= " + optional.join(_literal(piece) for piece in item.pieces)


def literal_grammar(text: str) -> str:
    """Return the grammar of one fixed text."""
    return f"root ::= {_literal(text)}"


def _literal(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    code = ord(character)
    return character if code >= 32 and code != 127 else f"\\x{code:02X}"
