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
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's folder, or any model: a folder, a Hub id, a .gguf file.")
    ],
    prompt: Annotated[
        str,
        typer.Argument(metavar="PROMPT", help="What the answer goes on from; - reads a prompt a line from stdin."),
    ],
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens at most.")] = 64,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", metavar="N", min=1, help="N texts drawn at temperature 1, each with its prompt before it."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of what is drawn.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Answer from a trained run, greedily, or let a model write texts (--samples), such as what `data.mix` replays.

    Example: `spt ask runs/demo/spt "The honour of being the botanist belongs to"`

    Example: `spt ask HuggingFaceTB/SmolLM2-135M-Instruct - --samples 12 < data/openings.txt > replay.txt`
    """
    configure(enabled=not quiet)
    prompts = [text for text in _prompts(prompt) for _ in range(samples or 1)]
    from spt.model import load_trained
    from spt.score.generate import generate, prompt_ids

    place, dtype = _model_of(run)
    say(f"loading {place}")
    model, tokenizer = load_trained(place, dtype=dtype)
    answers = generate(
        model,
        tokenizer,
        prompt_ids(tokenizer, prompts),
        max_new_tokens=max_new_tokens,
        batch_size=64,
        sample_seed=None if samples is None else seed,
        echo=samples is not None,
        label=None if samples is None else "texts",
    )
    if as_json:
        pairs = [{"prompt": text, "answer": answer} for text, answer in zip(prompts, answers, strict=True)]
        emit({"answers": pairs}, as_json=True)
    else:
        sys.stdout.write("".join(f"{answer}\n" for answer in answers))
        if not all(answers):
            say("(an empty line: the model ended at once)")


def _prompts(given: str) -> list[str]:
    prompts = [line.rstrip("\n") for line in sys.stdin] if given == "-" else [given]
    prompts = [text.rstrip() for text in prompts if text.strip()]  # a space at the end belongs to the answer
    if not prompts:
        raise InputError('no prompt: give a text, such as "Ann Lee directed"')
    return prompts


def _model_of(place: str) -> tuple[str, str]:
    run = Path(place)
    final = run / "train" / "final"
    if final.exists():
        config = run / "config.yaml"
        return str(final), read_config(config).model.dtype if config.exists() else "float32"
    model = any((run / name).exists() for name in ("config.json", "adapter_config.json"))
    # A name in a folder that is here is no Hub id, though it may look like one.
    elsewhere = not run.exists() and not (run.parent.is_dir() and run.parent != Path())
    if model or elsewhere or run.suffix == ".gguf":
        return place, "float32"
    raise MissingError(f"{run}: neither a trained run (no train/final/) nor a model; run `spt train CONFIG` first")
