"""`--dry-run`: the inputs are checked, and each stage says what it would do."""

from collections.abc import Sequence
from pathlib import Path

from spt.cli.options import console
from spt.config import Config
from spt.model import check_lora


def print_plan(config: Config, stages: Sequence[str]) -> None:
    """Print what each stage would do. Raises what the stage itself would raise for inputs that are wrong."""
    folders = {"preprocess": "segmented", "train": "train", "evaluate": "evaluate"}
    lines = [f"{config.name} (seed {config.seed}) → {config.output}", *_inputs(config, stages)]
    for stage in stages:
        if stage == "preprocess" and config.data.segmented is not None:
            lines.append(f"  preprocess  shared: {config.data.segmented}")
            continue
        folder = Path(config.output) / folders[stage]
        lines.append(f"  {stage:<10}  {_state(folder)}: {folder}")
    console().print("\n".join(lines), markup=False)


def _inputs(config: Config, stages: Sequence[str]) -> list[str]:
    from spt.benchmark.questions import read_questions
    from spt.corpus import input_key

    lines = []
    if "preprocess" in stages and config.data.train is not None and config.data.segmented is None:
        input_key(config.data.train)
        lines.append(f"  corpus      {config.data.train.path or config.data.train.hub}")
    if "train" in stages and config.model.lora is not None:
        check_lora(config.model.lora)
    if "evaluate" in stages and config.data.questions is not None:
        questions = read_questions(Path(config.data.questions.path))
        lines.append(f"  questions   {len(questions.questions)} ({config.data.questions.path})")
    return lines


def _state(folder: Path) -> str:
    if (folder / "manifest.json").exists():
        return "finished (reused if nothing it depends on has changed)"
    return "unfinished (continued)" if (folder / "key.json").exists() else "new"
