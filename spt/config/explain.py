"""What is wrong in an experiment file, in one line a problem.

In: pydantic's list of problems. Out: key, what was allowed, what was given, the nearest known name. Trade-off:
pydantic's own words stand where they read well; only those that speak of Python are replaced.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

SHOWN = 80
"""Characters of a wrong value that a message shows."""

_PLAIN = {
    "missing": "required, but missing",
    "dict_type": "must be a mapping, such as {key: value}",
    "tuple_type": "must be a list, such as [a, b]",
    "string_type": "must be text",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "invalid_key": "a key must be text; put it in quotes",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}


def explain_problem(problem: Mapping[str, Any], root: type[BaseModel]) -> str:
    """Return one line for one of pydantic's problems with a model."""
    loc = [str(part) for part in problem["loc"]]
    of_key = loc[-1:] == ["[key]"]
    key = ".".join(loc[:-2] if of_key else loc) or "(the file)"
    kind, value = problem["type"], problem.get("input")
    if kind == "extra_forbidden":
        return f"{key}: unknown key. {_suggest_key(loc, root)}"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        return f"{key}: {show(value)} is not one of {', '.join(known)}.{nearest(str(value), known)}"
    if kind == "model_type":
        return f"{key}: {_expected_section(loc, value, root)}{_given(value)}"
    return f"{key}: {'a key ' if of_key else ''}{_message(problem)}{'' if kind == 'missing' else _given(value)}"


def _message(problem: Mapping[str, Any]) -> str:
    if problem["type"] in _PLAIN:
        return _PLAIN[problem["type"]]
    message = str(problem["msg"]).removeprefix("Value error, ")
    return re.sub("^(Input|Tuple|String|Value|Dictionary) should", "must", message).replace(" after validation", "")


def show(value: Any) -> str:
    """Return a value as it would stand in the file, cut to SHOWN characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _given(value: Any) -> str:
    # A whole section would bury the message.
    return "" if isinstance(value, (dict, BaseModel)) and value else f" (given: {show(value)})"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean ...?`, or nothing where no known name is near."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def _suggest_key(loc: Sequence[str], root: type[BaseModel]) -> str:
    section = _section_at(loc[:-1], root)
    known = sorted(section.model_fields) if section else []
    elsewhere = [
        f"{name}.{loc[-1]}"
        for name in root.model_fields
        if (inner := _section_at([name], root)) is not None and loc[-1] in inner.model_fields
    ]
    near = f" Did you mean {elsewhere[0]}?" if elsewhere else nearest(loc[-1], known)
    return near.strip() or f"Known here: {', '.join(known)}."


def _expected_section(loc: Sequence[str], value: Any, root: type[BaseModel]) -> str:
    section = _section_at(loc, root)
    known = list(section.model_fields) if section else []
    if isinstance(value, str) and "path" in known:
        return f"must be a section; write {loc[-1]}: {{path: {value}}}"
    return f"must be a section with keys such as {', '.join(known[:4])}; fill it, or remove it"


def _section_at(loc: Sequence[str], root: type[BaseModel]) -> type[BaseModel] | None:
    section = root
    for part in loc:
        if part.isdigit():  # an entry of a list is what the list holds
            continue
        field = section.model_fields.get(part)
        kinds = [field.annotation, *get_args(field.annotation)] if field else []
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return None
        section = inner[0]
    return section
