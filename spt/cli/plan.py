"""`--dry-run`: the inputs are checked, and each stage says what it would do.

Trade-off: of a corpus the first records are read, as many as take a moment, not all.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from spt.artifact import changed_keys, read_json
from spt.cli.options import console, emit
from spt.config import Config
from spt.errors import MissingError
from spt.progress import is_main_process

CHECKED = 10_000
"""Records of the corpus that a dry run reads."""


def print_plan(
    config: Config,
    stages: Sequence[str],
    model: str | None = None,
    *,
    on: str | int | None = None,
    as_json: bool = False,
) -> None:
    """Print what each stage would do, and what training would take on the machine `on` names (None: this one).

    Raises what the stage itself would raise for inputs that are wrong.
    """
    if not is_main_process():
        return
    found = {stage: STAGES[stage](config, model) for stage in stages}
    estimated = _estimate(config, on) if "train" in stages else None
    if as_json:
        from spt.cli.plan_train import estimate_values

        training = {} if estimated is None else {"training": estimate_values(estimated)}
        emit({"name": config.name, "output": config.output, "stages": found, **training}, as_json=True)
        return
    lines = [f"{config.name} (seed {config.seed}) → {config.output}"]
    for stage in stages:
        lines += [f"  {stage:<10}  {line}" for line in found[stage]]
    console().print("\n".join(lines), markup=False, soft_wrap=True)
    if estimated is not None:
        from spt.cli.plan_train import render_estimate

        console().print()
        console().print(render_estimate(estimated), markup=False)


def _estimate(config: Config, on: str | int | None) -> Any:
    from spt.train.estimate import estimate

    return estimate(config, None if on is None else str(on))


def _preprocess(config: Config, model: str | None) -> list[str]:
    from spt.corpus import Rejects, read_records, stop
    from spt.preprocess import preprocess, preprocess_key

    if config.data.segmented is not None or config.data.train is None:
        return [f"shared: {preprocess(config)}"]
    rejects = Rejects()
    reject = rejects if config.data.on_error == "reject" else stop
    read = sum(1 for _ in islice(read_records(config.data.train, reject=reject, limit=config.data.limit), CHECKED))
    source = config.data.train.hub or ", ".join(config.data.train.paths)
    bad = f", {sum(rejects.counts.values())} rejected" if rejects.counts else ""
    more = " (the first)" if read == CHECKED else ""
    return [f"{source}: {read:,} records{more}{bad}", _state(Path(config.output) / "segmented", preprocess_key(config))]


def _train(config: Config, model: str | None) -> list[str]:
    from spt.model import check_lora, load_tokenizer
    from spt.train.setup import train_folder, train_key

    if config.model.lora is not None:
        check_lora(config.model.lora)
    if config.model.base is not None:
        load_tokenizer(config.model)
    try:
        return [_state(train_folder(config), train_key(config))]
    except MissingError:
        return [f"new, once the corpus is segmented: {train_folder(config)}"]


def _evaluate(config: Config, model: str | None) -> list[str]:
    from spt.score.evaluate import check_evaluation, evaluate_folder, evaluate_key
    from spt.score.reads import reads_first

    count = check_evaluation(config)
    if config.data.questions is None:
        return ["nothing is asked (no data.questions)"]
    asked = f"{config.data.questions.place}: {count:,} questions"
    lines = [line for line in (asked, reads_first(config, model)) if line is not None]
    try:
        return [*lines, _state(evaluate_folder(config), evaluate_key(config, model))]
    except MissingError:
        return [*lines, f"new, once the model is trained: {evaluate_folder(config)}"]


def _state(folder: Path, key: dict[str, Any]) -> str:
    if not (folder / "key.json").exists():
        return f"new: {folder}"
    changes = changed_keys(read_json(folder / "key.json"), key)
    if changes:
        return "\n    ".join([f"refused without --force, made with other settings: {folder}", *changes])
    done = (folder / "manifest.json").exists()
    return f"{'finished, reused' if done else 'unfinished, continued'}: {folder}"


STAGES: dict[str, Callable[[Config, str | None], list[str]]] = {
    "preprocess": _preprocess,
    "train": _train,
    "evaluate": _evaluate,
}
