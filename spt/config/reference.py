"""Every key of an experiment, as a page: `python -m spt.config.reference > docs/config.md`.

In: the sections' own types, defaults, bounds and docstrings. Out: Markdown, a table a section. Trade-off: what a
validator asks beyond types and bounds stands in no table; an error says it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from spt.config.schema import Config

Node = Mapping[str, Any]
_HEAD = """# Every key

Made from the sections' definitions by `python -m spt.config.reference > docs/config.md`. A file may leave out whatever
has a default; `extends` names files that it lies over, and `--set train.epochs=4` sets one value. `spt run CONFIG`
leaves every key with its value in `OUTPUT/config.yaml`.
"""
_BOUNDS = (
    (("ge", "minimum"), "from"),
    (("gt", "exclusiveMinimum"), "above"),
    (("le", "maximum"), "to"),
    (("lt", "exclusiveMaximum"), "below"),
)
_NAMES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


def reference() -> str:
    """Return the page."""
    schema = Config.model_json_schema()
    parts = [_HEAD]
    places: dict[str, list[str]] = {}
    for place, name in _sections(schema, schema["$defs"], ""):
        places.setdefault(name, []).append(place)
    parts.append("## the file itself\n\n" + _table(schema, places))
    for name, found in places.items():
        section = schema["$defs"][name]
        also = f"\n\nAlso under {', '.join(f'`{place}`' for place in found[1:])}." if found[1:] else ""
        parts.append(f"## {found[0]}\n\n{section.get('description', '')}{also}\n\n{_table(section, places)}")
    return "\n".join(parts)


def _sections(node: Node, defined: Mapping[str, Node], place: str) -> Iterator[tuple[str, str]]:
    """Yield where each section stands, and its name, the outer ones first."""
    for key, value in node.get("properties", {}).items():
        for name in _refs(value):
            own = f"{place}.{key}".lstrip(".")
            yield own, name
            yield from _sections(defined[name], defined, own)


def _refs(node: Node) -> Iterator[str]:
    """Yield the names of the sections that a value may be, or be a list of."""
    if "$ref" in node:
        yield node["$ref"].rsplit("/", 1)[1]
    for part in (*node.get("anyOf", ()), *([node["items"]] if isinstance(node.get("items"), dict) else ())):
        yield from _refs(part)


def _table(section: Node, places: Mapping[str, list[str]]) -> str:
    rows = ["| key | value | default |", "|---|---|---|"]
    for key, node in section["properties"].items():
        inner = next(_refs(node), None)
        default = "required" if key in section.get("required", ()) else "" if inner else _shown(node.get("default"))
        rows.append(f"| `{key}` | {_kind(node, places)} | {default} |")
    return "\n".join(rows) + "\n"


def _shown(default: Any) -> str:
    return "none" if default in (None, "", [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"


def _kind(node: Node, places: Mapping[str, list[str]]) -> str:
    """Return in words what a value may be."""
    if "$ref" in node:
        place = places[next(_refs(node))][0]
        return f"the section [{place}](#{place.replace('.', '')})"
    if "enum" in node or "const" in node:
        return ", ".join(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    if "anyOf" in node:
        return ", or ".join(_kind(part, places) for part in node["anyOf"] if part.get("type") != "null")
    if node.get("type") == "array":
        parts = node.get("prefixItems")
        each = _kind(parts[0] if parts else node.get("items", {}), places)
        return f"list of {len(parts)}: {each}" if parts else f"list: {each}"
    if node.get("type") == "object":
        keys = node.get("propertyNames", {}).get("enum")
        values = node.get("additionalProperties")
        each = _kind(values, places) if isinstance(values, dict) else "any"
        return f"mapping{' of ' + ', '.join(f'`{key}`' for key in keys) if keys else ''}: {each}"
    name = _NAMES.get(str(node.get("type")), "any")
    bounds = [f"{word} {node[key]}" for keys, word in _BOUNDS for key in keys if key in node]
    return " ".join([name, *bounds])


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201  # what this module is run for
