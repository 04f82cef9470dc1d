"""The final model: a folder that `from_pretrained` reads, or an adapter with what peft leaves out.

In: what was trained, whole or sharded. Out: `final/`, read back where it is an adapter, and its card. Trade-off: where
a tag made the vocabulary grow, an adapter would not fit its base, so the merged model is saved whole.
"""

import shutil
from pathlib import Path

import torch

from spt.checkpoint import gather, publish
from spt.config import Config
from spt.model import Prepared, untrained, verify_adapter
from spt.progress import is_main_process, say
from spt.train.card import note_facts


def save_final(config: Config, prepared: Prepared, folder: Path) -> None:
    """Write `folder/final` (under another name first) and the model card `folder/README.md`.

    Every rank calls it, since a sharded model is gathered; the main one writes. Raises WorkError where an adapter
    learned nothing, DamagedError where its file is not what was trained.
    """
    adapter = config.model.lora is not None and not prepared.grown
    gather(prepared.model, only_trained=adapter)
    if not is_main_process():
        return
    final, temporary = folder / "final", folder / ".final.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    model = prepared.model
    generation_config = model.generation_config
    if config.model.lora is not None:
        _tell_untrained(untrained(model))
    if adapter:
        model.save_pretrained(temporary)
        verify_adapter(model, temporary)
    else:
        model = model.merge_and_unload() if config.model.lora is not None else model
        model.to(getattr(torch, config.model.dtype)).save_pretrained(temporary)
    generation_config.save_pretrained(temporary)
    prepared.tokenizer.save_pretrained(temporary)
    (temporary / "README.md").unlink(missing_ok=True)  # peft's empty card
    publish(temporary, final)
    note_facts(config, prepared, folder)


def _tell_untrained(modules: list[str]) -> None:
    if modules:
        say(f"warning: no gradient reached the adapter of {len(modules)} modules: {', '.join(modules)}")
