"""What of a run may be read by others: paths without the user's home, no secrets, the command that was typed.

In: values of the run. Out: the same, safe to publish. Trade-off: secrets are known by their shape and by the names that
stand before them, so one in a free text of another shape would stay.
"""

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spt.config import Config

HIDDEN = "***"
_NAMED = re.compile(
    r"(?i)\b((?:access_|auth_|hf_|bearer_)?token|api_?key|secret|password|authorization)(\s*[=:]\s*)(?!\s)[^\s,}'\"]+"
)
_SHAPED = re.compile(r"\b(?:hf_|sk-|ghp_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}|(?<=://)[^/\s@]+:[^/\s@]+(?=@)")
_KEY = re.compile(r"(?i)(?:(?:access_|auth_|hf_|bearer_)?token|(?:.*_)?api_?key|secret|password|authorization)")


def public(value: Any) -> Any:
    """Return a value, or all values within it, with paths made relative or put under `~`, and secrets hidden."""
    if isinstance(value, str):
        return _SHAPED.sub(HIDDEN, _NAMED.sub(rf"\1\2{HIDDEN}", _relative(value)))
    if isinstance(value, Mapping):
        return {
            public(key): HIDDEN if isinstance(one, str) and _KEY.fullmatch(str(key)) else public(one)
            for key, one in value.items()
        }
    return [public(one) for one in value] if isinstance(value, list | tuple) else value


def _relative(text: str) -> str:
    for folder, stands_for in ((Path.cwd(), "."), (Path.home(), "~")):
        if folder != Path(folder.anchor):
            text = re.sub(rf"(?<![\w/]){re.escape(str(folder))}(?![\w.-])", stands_for, text)
    return text.removeprefix("./")


def command_line(config: Config) -> str:
    """Return the command that was typed, or, for a call from Python, the one that does the same."""
    program = Path(sys.argv[0])
    if program.name in ("spt", "spt.exe") or program.parts[-2:] == ("spt", "__main__.py"):
        return shlex.join(["spt", *public(sys.argv[1:])])
    return shlex.join(["spt", "train", *public([f"{config.output}/config.yaml"])])
