"""The comparison file: which methods on which experiments, with which seeds.

    experiments    name -> an experiment without its method: a file, a list of files, or sections with `extends`
    methods        name -> the same, laid over each experiment
    adapt          experiment -> method -> the same, laid over the cells of the two: what a method needs of a corpus

Shorter: `base: FILE` for one experiment, a list of files for methods (each called as its file), and `models`, a list of
bases or name -> keys of `model`, each laid over each experiment.

In: YAML, and `--set`. Out: a Comparison whose layers hold no `extends` any more, and the values that go to every cell.
Trade-off: files are found from the comparison's own folder, what they name (corpora, models) from where `spt` is run,
as in any experiment.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from spt.config import Config, read_yaml
from spt.config.explain import nearest
from spt.config.read import apply_override, check_values, lay_over, lay_under
from spt.config.values import Number, PositiveInt, Section, Text
from spt.errors import ConfigError

_OWN = ("name", "seed", "output")
"""Keys of an experiment that a comparison sets in each cell."""
SECTIONS = tuple(key for key in Config.model_fields if key not in _OWN)
LONGEST = 100
"""Characters of a name at most: a folder's may have 255 bytes."""


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError("must be letters, digits, dots, hyphens and underscores: a folder is called so")
    if len(name) > LONGEST:
        raise ValueError(f"must have at most {LONGEST} characters, not {len(name)}: a folder is called so")
    return name


def _layer(value: Any) -> Any:
    """Return a layer as a mapping; one or more files alone are what it extends."""
    return {"extends": value} if isinstance(value, str | list) else value


def _spelt_out(values: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison whose short forms are written out."""
    values = dict(values)
    base, models = values.pop("base", None), values.pop("models", None)
    if isinstance(values.get("methods"), list):
        values["methods"] = _named_after("methods", values["methods"], "the path of a file")
    if base is not None:
        if "experiments" in values:
            raise ValueError("give either base (one experiment) or experiments (some, each with a name)")
        values["experiments"] = _named_after("base", [base], "the path of a file")
    if models is not None and not models:
        raise ValueError("models: must not be empty; give at least a base, or remove it")
    if models is not None and isinstance(values.get("experiments"), dict):
        named = models if isinstance(models, dict) else _named_after("models", models, "a base, as in model.base")
        values["experiments"] = {
            f"{experiment}-{name}": _with_model(_layer(layer), model)
            for experiment, layer in values["experiments"].items()
            for name, model in named.items()
        }
    return values


def _named_after(key: str, given: Any, what: str) -> dict[str, Any]:
    """Return things by their file's name, or the last part of their Hub id."""
    if not isinstance(given, list) or not all(isinstance(one, str) and one.strip() for one in given):
        raise ValueError(f"{key}: each must be {what}; give others as NAME: ...")
    named = {Path(one).name.removesuffix(".yaml").removesuffix(".gguf"): one for one in given}
    if len(named) < len(given):
        raise ValueError(f"{key}: two of {', '.join(given)} would have one name; give them as NAME: ...")
    return named


def _with_model(layer: Any, model: Any) -> Any:
    if not isinstance(layer, dict):
        return layer  # no experiment: refused where its own type is checked
    return lay_over(layer, {"model": {"base": model, "from_scratch": None} if isinstance(model, str) else model})


_SHORT = ("base", "models")
Name = Annotated[Text, AfterValidator(_folder_name)]
Layer = Annotated[dict[str, Any], BeforeValidator(_layer)]
Seed = Annotated[int, Number, Field(ge=0, lt=2**63)]


class Comparison(Section):
    """A grid of cells. `baseline`: the method that the others are tested against (default: the first)."""

    name: Name
    output: Text = ""
    experiments: Annotated[dict[Name, Layer], Field(min_length=1)]
    methods: Annotated[dict[Name, Layer], Field(min_length=1)]
    adapt: dict[Text, dict[Text, Layer]] = Field(default={})
    baseline: Text = ""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0,)
    jobs: PositiveInt = 1

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = _spelt_out(values)
        defaults: dict[str, Any] = {}
        if not values.get("output") and values.get("name"):
            defaults["output"] = f"runs/compare/{values['name']}"
        if not values.get("baseline") and isinstance(values.get("methods"), dict) and values["methods"]:
            defaults["baseline"] = next(iter(values["methods"]))
        return {**values, **defaults}

    @model_validator(mode="after")
    def _known(self) -> Self:
        named = [(self.baseline, self.methods, "baseline", "methods")]
        named += [(name, self.experiments, "adapt", "experiments") for name in self.adapt]
        named += [(name, self.methods, "adapt", "methods") for layers in self.adapt.values() for name in layers]
        for name, known, key, among in named:
            if name not in known:
                raise ValueError(f"{key}: {name!r} is none of {among} ({', '.join(known)}).{nearest(name, known)}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds: {list(self.seeds)} holds one twice; the two cells would be one")
        return self


def read_comparison(path: Path, overrides: Sequence[str] = ()) -> tuple[Comparison, list[str]]:
    """Return the comparison in a YAML file, and those of the overrides that are for every cell.

    An override of a key above changes the comparison (`seeds=[0]`); one of a section of an experiment
    (`train.epochs=2`) is laid over every cell, last. Raises ConfigError.
    """
    values, for_cells = read_yaml(path), []
    if "data" in values:
        raise ConfigError(f"{path}: is an experiment (it has data), not a comparison; use `spt run {path}`")
    for override in overrides:
        if _is_for_cells(override):
            for_cells.append(override)
        else:
            _check_known(override, values)
            values = apply_override(values, override)
    comparison = check_values(values, Comparison, str(path))
    return comparison.model_copy(update=_resolved(comparison, path)), for_cells


def _resolved(comparison: Comparison, path: Path) -> dict[str, Any]:
    def resolve(layers: dict[str, Any]) -> dict[str, Any]:
        return {name: lay_under(layer, path) for name, layer in layers.items()}

    return {
        "experiments": resolve(comparison.experiments),
        "methods": resolve(comparison.methods),
        "adapt": {name: resolve(layers) for name, layers in comparison.adapt.items()},
    }


def _check_known(override: str, values: dict[str, Any]) -> None:
    """Refuse a key of a method or experiment that is not there: a misspelt one would be one more, all defaults."""
    within, *path = (part.strip() for part in override.partition("=")[0].split("."))
    known = values.get(within)
    if within in ("methods", "experiments") and len(path) > 1 and isinstance(known, dict) and path[0] not in known:
        names = [str(name) for name in known]
        raise ConfigError(
            f"--set {override!r}: {path[0]!r} is none of {within} ({', '.join(names)}).{nearest(path[0], names)}"
        )


def _is_for_cells(override: str) -> bool:
    first = override.partition("=")[0].split(".")[0].strip()
    if first in SECTIONS:
        return True
    own = (*Comparison.model_fields, *_SHORT)
    if first in own:
        return False
    known = [*own, *SECTIONS]
    raise ConfigError(
        f"--set {override!r}: {first!r} is neither a key of a comparison ({', '.join(own)}) nor a "
        f"section of an experiment ({', '.join(SECTIONS)}).{nearest(first, known)}"
    )
