"""`spt merge`: an adapter into its base's weights."""

from pathlib import Path
from typing import Annotated

import typer

from spt.artifact import read_json
from spt.cli.options import Force, Json, Quiet, emit
from spt.progress import configure


def merge(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The output of a finished run.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Write here instead of RUN/train/merged.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", help="Of the saved weights: float32, bfloat16 or float16 (default: the run's)."),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            "--scale",
            metavar="0..1",
            help="How much of the adapter is added: below 1 less is forgotten, and less is known.",
        ),
    ] = 1.0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Merge a trained adapter into its base → `RUN/train/merged/`, a model that any program loads.

    Example: `spt merge runs/person-description-spt --dtype bfloat16`
    """
    configure(enabled=not quiet)
    from spt.train import merge as merge_stage

    folder = merge_stage(run, output, dtype=dtype, scale=scale, force=force)
    emit({"merged": str(folder), **read_json(folder / "spt.json")}, as_json=as_json)
