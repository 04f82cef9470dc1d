"""`spt --version`."""

import sys
from typing import Annotated

import typer

from spt import __version__


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"spt {__version__}\n")
        raise typer.Exit


def callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Semantic-aware Permutation Training: teach a language model facts that it finds from either side."""
