"""Experiment files and `--set` overrides → Config.

In: a YAML file, the files it `extends`, and overrides. Out: a Config, or a ConfigError that lists every problem.
Trade-off: layers are merged two levels deep (section, key), so that a method's `permute.orders` replaces those below
instead of mixing with them.
"""

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from spt.artifact import write_atomically
from spt.config.explain import explain_problem, show
from spt.config.schema import Config
from spt.config.values import Section
from spt.config.yaml_text import dump_yaml, parse_yaml
from spt.errors import ConfigError

S = TypeVar("S", bound=Section)


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, with the files it `extends` laid under it.

    Raises ConfigError.
    """
    return _read_layers(path, ())


def _read_layers(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in [other.resolve() for other in above]:
        raise ConfigError(f"{path}: extends itself: {' -> '.join(map(str, (*above, path)))}; remove one extends")
    own = parse_yaml(_read_text(path, above), str(path))
    if not isinstance(own, dict):
        raise ConfigError(f"{path}: must be a mapping of sections, such as name: mine (given: {show(own)})")
    return lay_under(own, path, above)


def lay_under(own: Mapping[str, Any], path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return a mapping of the file `path`, with the files it `extends` laid under it; they are found from `path`.

    Raises ConfigError.
    """
    parents, own = own.get("extends", []), {key: value for key, value in own.items() if key != "extends"}
    if isinstance(parents, str):
        parents = [parents]
    if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
        raise ConfigError(f"{path}: extends must be a file or a list of files (given: {show(parents)})")
    layered: dict[str, Any] = {}
    for parent in parents:
        layered = lay_over(layered, _read_layers(path.parent / parent, (*above, path)))
    return lay_over(layered, own)


def _read_text(path: Path, above: Sequence[Path]) -> str:
    by = f", which {above[-1]} extends" if above else ""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        beside = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.5)
        hint = f"did you mean {path.parent / near[0]}?" if near else "give the path of a YAML file"
        raise ConfigError(f"{path}{by}: does not exist; {hint}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}{by}: is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}{by}: cannot be read ({error.strerror}); give a readable YAML file") from None


def lay_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `above` laid over `below`: sections merge key by key, a key's value replaces the one below as a whole."""
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
    *parents, leaf = (part.strip() for part in key.split("."))
    if not equals or not all((*parents, leaf)):
        raise ConfigError(f"--set {override!r}: write KEY=VALUE, such as train.learning_rate=2e-5")
    if not parents and leaf == "extends":
        raise ConfigError(f"--set {override!r}: extends stands in a file; give a file that extends both")
    root = dict(values)
    inner = root
    for parent in parents:
        child = inner.get(parent)
        if child is not None and not isinstance(child, dict):
            raise ConfigError(f"--set {override!r}: {parent} holds {show(child)}, which has no keys")
        inner[parent] = dict(child or {})
        inner = inner[parent]
    # Alone, these would open an empty block, list, mapping or tag, or a comment: `data.train.path=-` means the sign.
    value = text.strip()
    literal = value in ("-", "?", "!") or value[:1] in ("|", ">", "#")
    inner[leaf] = value if literal else parse_yaml(text, f"--set {key}")
    return root


def read_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Return the experiment in a YAML file, with `a.b=value` overrides laid over it.

    Raises ConfigError naming each wrong key, its value, what was allowed, and the nearest known key.
    """
    values = read_yaml(path)
    if "methods" in values:
        raise ConfigError(f"{path}: is a comparison (it has methods), not an experiment; use `spt compare {path}`")
    for override in overrides:
        values = apply_override(values, override)
    return check_values(values, Config, str(path))


def check_values(values: Mapping[str, Any], root: type[S], source: str) -> S:
    """Return the values as a `root`; ConfigError lists every problem behind `source`."""
    try:
        return root.model_validate(values)
    except ValidationError as error:
        # A list of wrong entries is not empty, though pydantic counts those that are right.
        told = (one for one in error.errors() if one["type"] != "too_short" or not one["input"])
        problems = "\n  ".join(explain_problem(problem, root) for problem in told)
        raise ConfigError(f"{source}:\n  {problems}") from None


def write_config(config: Config, path: Path) -> None:
    """Write the resolved experiment, every default spelt out; reading it gives an equal Config."""
    write_atomically(path, dump_yaml(config.model_dump(mode="json")))
