"""`spt evaluate --export-lm-eval`: questions → tasks of lm-evaluation-harness, and the command that runs them."""

from pathlib import Path

from spt.cli.options import console, emit
from spt.config import Config


def export_tasks(config: Config, folder: Path, *, as_json: bool) -> None:
    """Write the questions as tasks, and say how to run them."""
    from spt.score.lm_eval import export_lm_eval

    tasks = export_lm_eval(config, folder)
    if not as_json:
        lines = [f"{folder}:", *(f"  {count:>7,}  {task}" for task, count in tasks.items())]
        lines.append(f"Then: lm_eval --model hf --model_args pretrained=MODEL --include_path {folder} --tasks spt")
        console().print("\n".join(lines), markup=False, soft_wrap=True)
    emit(tasks, as_json=as_json)
