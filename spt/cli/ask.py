"""`spt ask`: what an engineer tries first."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spt.cli.options import Json, Quiet, emit
from spt.config import read_config
from spt.errors import InputError, MissingError
from spt.progress import configure, say


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or any model folder.")],
    prompt: Annotated[
        str,
        typer.Argument(metavar="PROMPT", help="What the answer goes on from; - reads a prompt a line from stdin."),
    ],
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens at most.")] = 64,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Answer from a trained run, greedily.

    Example: `spt ask runs/demo/spt "The honour of being the botanist belongs to"`
    """
    configure(enabled=not quiet)
    prompts = [line.rstrip("\n") for line in sys.stdin] if prompt == "-" else [prompt]
    prompts = [text.rstrip() for text in prompts if text.strip()]  # a space at the end belongs to the answer
    if not prompts:
        raise InputError('no prompt: give a text, such as "Ann Lee directed"')
    from spt.model import load_trained
    from spt.score.generate import generate, prompt_ids

    place, dtype = _model_of(run)
    say(f"loading {place}")
    model, tokenizer = load_trained(place, dtype=dtype)
    ids = prompt_ids(tokenizer, prompts)
    answers = generate(model, tokenizer, ids, max_new_tokens=max_new_tokens, batch_size=16)
    if as_json:
        pairs = [{"prompt": text, "answer": answer} for text, answer in zip(prompts, answers, strict=True)]
        emit({"answers": pairs}, as_json=True)
    else:
        sys.stdout.write("".join(f"{answer}\n" for answer in answers))
        if not all(answers):
            say("(an empty line: the model ended at once)")


def _model_of(run: Path) -> tuple[str, str]:
    final = run / "train" / "final"
    if final.exists():
        config = run / "config.yaml"
        return str(final), read_config(config).model.dtype if config.exists() else "float32"
    if (run / "config.json").exists() or (run / "adapter_config.json").exists():
        return str(run), "float32"
    raise MissingError(
        f"{run}: neither a trained run (no train/final/) nor a model folder; run `spt train CONFIG` first"
    )
