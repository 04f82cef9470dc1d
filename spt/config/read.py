"""YAML files and `--set` overrides → Config.

YAML is read by the rules of version 1.2 (core schema): `2e-5` is a number, `no` and dates are text, which a boolean field
then accepts as false. A key given twice is an error.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from spt.artifact import write_atomically
from spt.config.schema import Config
from spt.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2 scalars and without duplicate keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raises on a key given twice."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]  # PyYAML's stubs
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first) + [""])


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
        raise ConfigError(f"{place}: {error.problem or 'not YAML'}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not YAML ({error})") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, with the files it `extends` laid under it.

    Raises ConfigError.
    """
    return _read_layers(path, ())


def _read_layers(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in above:
        raise ConfigError(f"{path}: extends itself, by way of {' -> '.join(map(str, above))}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    own = parse_yaml(text, str(path))
    if not isinstance(own, dict):
        raise ConfigError(f"{path}: an experiment is a mapping of sections, not {type(own).__name__}")
    parents = own.pop("extends", [])
    layered: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        layered = lay_over(layered, _read_layers(path.parent / parent, (*above, path.resolve())))
    return lay_over(layered, own)


def lay_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `above` laid over `below`: sections merge key by key, and a key's value replaces the one below as a whole."""
    merged = dict(below)
    for section, value in above.items():
        under = merged.get(section)
        merged[section] = {**under, **value} if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def apply_override(values: dict[str, Any], override: str) -> dict[str, Any]:
    """Return `values` with one `a.b=value`, the value read as YAML.

    Raises ConfigError.
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override!r}: write KEY=VALUE, such as train.learning_rate=2e-5")
    *parents, leaf = key.strip().split(".")
    root = dict(values)
    inner = root
    for parent in parents:
        child = inner.get(parent)
        if child is not None and not isinstance(child, dict):
            raise ConfigError(f"--set {override!r}: {parent} holds {child!r}, which has no keys")
        inner[parent] = dict(child or {})
        inner = inner[parent]
    inner[leaf] = parse_yaml(text, f"--set {key}")
    return root


def read_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Return the experiment in a YAML file, with `a.b=value` overrides laid over it.

    Raises ConfigError naming each wrong key, its value, what was allowed, and the nearest known key.
    """
    values = read_yaml(path)
    for override in overrides:
        values = apply_override(values, override)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        problems = "\n  ".join(_describe(problem) for problem in error.errors())
        raise ConfigError(f"{path}:\n  {problems}") from None


def write_config(config: Config, path: Path) -> None:
    """Write the resolved experiment, every default spelt out; reading it gives an equal Config."""
    text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)
    write_atomically(path, text)


def _describe(problem: Any) -> str:
    loc = [str(part) for part in problem["loc"] if not str(part).startswith(("tuple[", "str", "constrained"))]
    key = ".".join(loc) or "(the file)"
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown key. {_suggest(loc)}"
    message = problem["msg"].removeprefix("Value error, ")
    value = problem.get("input")
    shown = "" if isinstance(value, (dict, BaseModel)) else f" (given: {value!r})"
    hint = (
        " Write a number without quotes, such as 2e-5 or 16."
        if "_parsing" in problem["type"] and _is_number(problem)
        else ""
    )
    return f"{key}: {message}{shown}{hint}"


def _is_number(problem: Any) -> bool:
    return str(problem["type"]).startswith(("int", "float"))


def _suggest(loc: Sequence[str]) -> str:
    known = sorted(_fields_at(loc[:-1]))
    near = difflib.get_close_matches(loc[-1], known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(known)}."


def _fields_at(loc: Sequence[str]) -> list[str]:
    section: type[BaseModel] = Config
    for part in loc:
        field = section.model_fields.get(part)
        kinds = [field.annotation, *get_args(field.annotation)] if field else []
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return []
        section = inner[0]
    return ["extends", *section.model_fields] if section is Config else list(section.model_fields)
