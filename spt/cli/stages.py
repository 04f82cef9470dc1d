"""`spt run`, `preprocess`, `train`, `evaluate`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from spt.artifact import read_json
from spt.cli.agreement import compare
from spt.cli.export import export_tasks
from spt.cli.options import (
    ConfigFile,
    DryRun,
    Force,
    Json,
    Limit,
    Output,
    Quiet,
    Set,
    emit,
    save_config,
    setup,
)
from spt.cli.plan import print_plan
from spt.cli.report import print_table, report_on
from spt.config import Config
from spt.errors import InputError
from spt.progress import is_main_process

Launch = Annotated[
    int | None,
    typer.Option("--launch", metavar="N", min=1, help="In N processes on this machine: on its GPUs, or cores."),
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="NxNAME", help="With --dry-run: the devices to estimate for, such as 8xh100."),
]


def run(
    config: ConfigFile,
    overrides: Set = None,
    output: Output = None,
    limit: Limit = None,
    launch: Launch = None,
    on: On = None,
    dry_run: DryRun = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Preprocess, train, evaluate, report: a corpus in, the forward/reversed table out.

    Example: `spt run mine.yaml --set train.epochs=20 --output runs/mine-20`
    """
    settings = setup(config, overrides, {"output": output, "data.limit": limit}, quiet=quiet)
    if dry_run:
        print_plan(settings, ("preprocess", "train", "evaluate"), on=on or launch, as_json=as_json)
        return
    _refuse_on(on)
    _launch(launch, settings)
    from spt.score import check_evaluation
    from spt.score import evaluate as evaluate_stage
    from spt.train import leave
    from spt.train import train as train_stage

    check_evaluation(settings)  # before hours of work that it could not use
    if settings.data.segmented is None:
        _preprocess(settings, force)
    folder = train_stage(settings, force=force)
    if settings.data.questions is not None:
        evaluate_stage(settings, force=force)
    save_config(settings)
    _refresh_card(settings)
    if settings.data.questions is None:
        emit(read_json(folder / "manifest.json"), as_json=as_json)
    elif is_main_process():
        emit(report_on([Path(settings.output)], None, show=not as_json), as_json=as_json)
    leave()


def preprocess(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", help="The experiment: a YAML file.", show_default=False)
    ] = None,
    against: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--compare", metavar="A B", help="Measure segmentation A against B instead; see docs/segmentation.md."
        ),
    ] = None,
    overrides: Set = None,
    output: Output = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Cut a corpus into units → `OUTPUT/segmented/`; on several devices under torchrun or accelerate launch.

    Example: `spt preprocess configs/demo/base.yaml --set data.train.path=facts.csv`
    """
    if (config is None) == (against is None):
        raise InputError("give either CONFIG, or --compare A B (two segmentations of one corpus)")
    if against is not None:
        if overrides or output or limit or dry_run or force:
            raise InputError("--compare reads two segmentations as they are; of the other options it takes only --json")
        compare(*against, as_json=as_json)
        return
    assert config is not None
    settings = setup(config, overrides, {"output": output, "data.limit": limit}, quiet=quiet)
    if dry_run:
        print_plan(settings, ("preprocess",), as_json=as_json)
        return
    folder = _preprocess(settings, force)
    save_config(settings)
    if is_main_process():
        emit(read_json(folder / "manifest.json"), as_json=as_json)


def train(
    config: ConfigFile,
    overrides: Set = None,
    output: Output = None,
    launch: Launch = None,
    on: On = None,
    push_to_hub: Annotated[
        bool, typer.Option("--push-to-hub", help="Push the final model to the Hub, to a private repository.")
    ] = False,
    dry_run: DryRun = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fine-tune on segmented data → `OUTPUT/train/`; on several machines under torchrun or accelerate launch.

    Example: `spt train mine.yaml --launch 2`
    """
    settings = setup(config, overrides, {"output": output}, quiet=quiet)
    if dry_run:
        print_plan(settings, ("train",), on=on or launch, as_json=as_json)
        return
    _refuse_on(on)
    _launch(launch, settings)
    from spt.train import check_push, leave
    from spt.train import push_to_hub as push
    from spt.train import train as train_stage

    if push_to_hub:
        check_push(settings)  # before hours of work
    folder = train_stage(settings, force=force)
    save_config(settings)
    if push_to_hub:
        push(settings)
    emit(read_json(folder / "manifest.json"), as_json=as_json)
    leave()


def evaluate(
    config: ConfigFile,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="PATH_OR_ID", help="Ask this model instead of the trained one."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export-lm-eval",
            metavar="DIR",
            help="Write the questions as tasks of lm-evaluation-harness; ask nothing.",
        ),
    ] = None,
    overrides: Set = None,
    output: Output = None,
    limit: Limit = None,
    launch: Launch = None,
    dry_run: DryRun = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Ask the questions forward and reversed → `OUTPUT/evaluate/`.

    Example: `spt evaluate configs/demo/spt.yaml --model runs/demo/spt/train/final`
    """
    settings = setup(config, overrides, {"output": output, "evaluate.limit": limit}, quiet=quiet)
    if export is not None and dry_run:
        raise InputError("--export-lm-eval writes tasks, and --dry-run nothing; leave one of them out")
    if export is not None:
        export_tasks(settings, export, as_json=as_json)
        return
    if dry_run:
        print_plan(settings, ("evaluate",), model, as_json=as_json)
        return
    _launch(launch, settings)
    from spt.score import evaluate as evaluate_stage
    from spt.train import leave, make_accelerator

    make_accelerator(settings)  # the scores' own would not ask whether the world is the one that was wanted
    folder = evaluate_stage(settings, model=model, force=force)
    save_config(settings)
    _refresh_card(settings)
    if is_main_process():
        if not as_json:
            print_table([Path(settings.output)])
        emit(read_json(folder / "summary.json"), as_json=as_json)
    leave()


def _refuse_on(on: str | None) -> None:
    if on is not None:
        raise InputError(f"--on {on}: estimates for devices that need not be there; give --dry-run with it")


def _launch(ranks: int | None, settings: Config) -> None:
    """Run this command in `ranks` processes and end with their exit code, where this process is none of them."""
    from spt.train import launch, must_launch, train_folder

    if must_launch(ranks, os.environ):
        assert ranks is not None
        raise typer.Exit(launch(ranks, sys.argv[1:], train_folder(settings)))


def _refresh_card(settings: Config) -> None:
    """Write the scores on the model card."""
    from spt.train import refresh_card, train_folder

    if is_main_process():
        refresh_card(train_folder(settings))


def _preprocess(settings: Config, force: bool) -> Path:
    from spt.preprocess import preprocess as preprocess_stage

    return preprocess_stage(settings, force=force)
