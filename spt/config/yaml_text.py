"""YAML text ↔ values, by the rules of version 1.2.

In: text. Out: values, or a ConfigError with line and column. Trade-off: only the plain decimal forms are numbers
(`2e-5`, `16`), so that `no`, `2024-01-01`, `1_000`, `0x10` and `0123` stay what they are: text, which a field for a
number refuses and one for true or false reads (`no`).
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from spt.errors import ConfigError

_SCALARS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
    ("merge", r"<<", "<"),
)


class _Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2 scalars, without duplicate keys, and without values that hold themselves."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # as PyYAML types it

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; raises on an alias of a list or mapping around it, which is not ended yet."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]  # not in PyYAML's types
            around = self.anchors.get(event.anchor)
            if around is not None and around.end_mark is None:
                problem = f"*{event.anchor} stands inside &{event.anchor}, so the value would hold itself; write it out"
                raise yaml.constructor.ConstructorError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raises on a key given twice."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                # Not part of YAML 1.2, and PyYAML gets a merge of a merge wrong.
                raise yaml.constructor.ConstructorError(
                    None, None, "<< is not read; use extends, or write the keys out", key_node.start_mark
                )
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be text, not a list or mapping", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice; keep one", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes what either version of YAML would not read as text."""


for _tag, _pattern, _first in _SCALARS:
    for _class in (_Loader, _Dumper):
        _resolver = re.compile(f"(?:{_pattern})$")
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _resolver, [*_first, ""])


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Elsewhere than in double quotes, PyYAML takes U+0085, U+2028 and U+2029 for line ends and folds them.
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_str)


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def parse_yaml(text: str, source: str) -> Any:
    """Return the value of YAML text.

    Raises ConfigError with `source`, line and column.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506  # _Loader is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        # What YAML could not parse is most often text with a colon or a bracket.
        remedy = (
            "" if isinstance(error, yaml.constructor.ConstructorError) else "; put text with signs of YAML in quotes"
        )
        raise ConfigError(f"{place}: {error.problem or 'not YAML'}{remedy}") from None
    except (yaml.YAMLError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(f"{source}: not YAML ({str(error).splitlines()[0]})") from None


def dump_yaml(value: Any) -> str:
    """Return YAML text that `parse_yaml` reads as an equal value."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
