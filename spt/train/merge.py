"""An adapter into its base's weights → `train/merged/`, a model that any program loads.

In: a finished run with an adapter. Out: a folder of `save_pretrained` with tokenizer and generation config. Trade-off:
the sum is made in float32 and rounded once, whatever the base was kept in, so it takes four bytes a parameter of main
memory.
"""

import shutil
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from spt.artifact import changed_keys, dump_json, read_json, versions, write_atomically
from spt.checkpoint import publish
from spt.config import Config, read_config
from spt.errors import InputError, MissingError, StaleError
from spt.model import fingerprint, load_trained
from spt.model.adapter import scale_adapter
from spt.progress import say

DTYPES = ("float32", "bfloat16", "float16")


def merge(
    run: Path, output: Path | None = None, *, dtype: str | None = None, scale: float = 1.0, force: bool = False
) -> Path:
    """Return the folder of the merged model, `RUN/train/merged` unless `output` is given; a finished one is reused.

    `dtype` is that of the saved weights, the run's `model.dtype` by default; `scale` is how much of the adapter is
    added: between the base (0) and what was trained (1) a model has forgotten less and learned less. Raises
    MissingError where nothing was trained, InputError where there is no adapter, StaleError for a folder that holds
    something else. Source of the scale: Wortsman et al. 2109.01903 (weights between two models), here of one adapter.
    """
    final, config = _adapter(run)
    kind = dtype or config.model.dtype
    if kind not in DTYPES:
        raise InputError(f"--dtype {kind}: give one of {', '.join(DTYPES)}")
    if not 0 <= scale <= 1:
        raise InputError(f"--scale {scale}: give a number from 0 (the base) to 1 (what was trained)")
    folder = output or run / "train" / "merged"
    made_of = {
        "adapter": fingerprint(str(final)),
        "base": fingerprint(str(config.model.base), config.model.revision),
        "dtype": kind,
        "scale": scale,
        "versions": versions("peft", "transformers"),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if not force and _is_made_of(folder, made_of):
            say(f"{folder}: merged before from the same adapter, reused")
        else:
            _write(final, config, folder, made_of)
            added = "the adapter" if scale == 1 else f"{scale:g} of the adapter"
            say(f"{folder}: {added} merged into {config.model.base}, in {kind}")
    return folder


def _adapter(run: Path) -> tuple[Path, Config]:
    final = run / "train" / "final"
    if not (run / "train" / "manifest.json").exists():
        raise MissingError(f"{run}: holds no finished training; run `spt train CONFIG` first, and give its output")
    if not (final / "adapter_config.json").exists():
        raise InputError(
            f"{final}: holds no adapter but a whole model (trained whole, or merged already since its vocabulary "
            "grew); there is nothing to merge: load it as it is"
        )
    if not (run / "config.yaml").exists():
        raise MissingError(f"{run / 'config.yaml'} is not there; `spt train CONFIG` writes it at its end, run it again")
    return final, read_config(run / "config.yaml")


def _is_made_of(folder: Path, made_of: dict[str, Any]) -> bool:
    if not folder.exists():
        return False
    if not (folder / "spt.json").exists():
        raise StaleError(f"{folder}: holds files that spt did not merge; choose another --output, or give --force")
    changes = changed_keys(read_json(folder / "spt.json"), made_of)
    if changes:
        listed = "\n  ".join(changes)
        raise StaleError(f"{folder}: was merged from something else:\n  {listed}\nGive --force, or another --output.")
    return True


def _write(final: Path, config: Config, folder: Path, made_of: dict[str, Any]) -> None:
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    model, tokenizer = load_trained(str(final), trust_remote_code=config.model.trust_remote_code)
    generation_config = model.generation_config
    scale_adapter(model, made_of["scale"])
    merged = model.merge_and_unload(safe_merge=True).to(getattr(torch, made_of["dtype"]))
    merged.save_pretrained(temporary)
    generation_config.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    if (final / "README.md").exists():
        shutil.copy(final / "README.md", temporary / "README.md")
    write_atomically(temporary / "spt.json", dump_json(made_of) + "\n")
    publish(temporary, folder)
