"""The flags that commands share, and what they make of a config."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from spt.config import Config, read_config, write_config
from spt.config.yaml_text import dump_yaml
from spt.progress import configure, is_main_process

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="The experiment: a YAML file.", show_default=False)]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, such as train.learning_rate=2e-5. Repeatable."),
]
Output = Annotated[
    str | None, typer.Option("--output", metavar="DIR", help="Write here instead of the config's output.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Use the first N records only; `evaluate`: N questions.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the inputs and say what would be done; write nothing.")]
Force = Annotated[
    bool, typer.Option("--force", help="Start anew; a finished output is kept until the new one is finished.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no messages.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")]

Flags = Mapping[str, str | int | None]
"""What flags set, by the keys of a config; None: the flag is not given."""


def setup(path: Path, overrides: list[str] | None, flags: Flags, *, quiet: bool) -> Config:
    """Return the config with the command line laid over it, and switch messages on or off."""
    configure(enabled=not quiet and is_main_process())
    return read_config(path, with_flags(overrides, flags))


def with_flags(overrides: list[str] | None, flags: Flags) -> list[str]:
    """Return the overrides, and behind them those that flags stand for."""
    given = [f"{key}={dump_yaml(value)}" for key, value in flags.items() if value is not None]
    return [*(overrides or ()), *given]


def save_config(config: Config) -> None:
    """Keep the resolved experiment beside its results."""
    if is_main_process():
        write_config(config, Path(config.output) / "config.yaml")


def emit(result: Any, *, as_json: bool) -> None:
    """Print a result as JSON, where asked for."""
    if as_json and is_main_process():
        sys.stdout.write(json.dumps(result, ensure_ascii=False, sort_keys=True) + "\n")


def console() -> Console:
    """Return the console of results (standard output)."""
    return Console(highlight=False)
