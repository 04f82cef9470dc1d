"""The final model: a folder that `from_pretrained` reads, or an adapter with what peft leaves out.

Trade-off: where a tag made the vocabulary grow, an adapter would not fit its base, so the merged model is saved whole.
"""

import os
import shutil
from pathlib import Path

import torch
import yaml

from spt.artifact import write_atomically
from spt.config import Config
from spt.model import Prepared


def save_final(config: Config, prepared: Prepared, folder: Path) -> None:
    """Write `folder/final` (under another name first) and the model card `folder/README.md`."""
    final, temporary = folder / "final", folder / ".final.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    model = prepared.model
    generation_config = model.generation_config
    adapted = config.model.lora is not None
    if adapted and prepared.grown:
        model = model.merge_and_unload()
    if not adapted or prepared.grown:
        model = model.to(getattr(torch, config.model.dtype))
    model.save_pretrained(temporary)
    generation_config.save_pretrained(temporary)
    prepared.tokenizer.save_pretrained(temporary)
    (temporary / "README.md").unlink(missing_ok=True)  # peft's empty card; ours stands beside
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    write_atomically(folder / "README.md", model_card(config, prepared))


def model_card(config: Config, prepared: Prepared) -> str:
    """Return a model card: what was trained on what, how to load it, and what to know before using it."""
    base = config.model.base or "none (trained from scratch)"
    lines = [
        "---",
        "library_name: " + ("peft" if config.model.lora is not None and not prepared.grown else "transformers"),
        *([f"base_model: {config.model.base}"] if config.model.base else []),
        "tags: [reversal-curse, semantic-aware-permutation-training]",
        "---",
        f"# {config.name}",
        "",
        f"Base: {base}. Trained with `spt` on facts whose units were put in the orders below, so that they are",
        "found from either side (Guo et al., arXiv 2403.00758).",
        "",
        "```yaml",
        yaml.safe_dump(
            {key: config.model_dump(mode="json")[key] for key in ("seed", "segment", "permute", "model", "train")},
            sort_keys=False,
            allow_unicode=True,
        ).rstrip(),
        "```",
        "",
        "The scores stand in `../evaluate/summary.json` once `spt evaluate` has run; the log in `metrics.jsonl`.",
    ]
    if prepared.tag is not None:
        name = prepared.tag.text or prepared.tokenizer.convert_ids_to_tokens(prepared.tag.token_id)
        lines += [
            "",
            f"Permuted examples began with the order tag `{name}`; other text has none, so prompts need none. The",
            "saved generation config suppresses the tag. A server that ignores `generation_config.json` may write it:",
            "suppress that token there (a logit bias of -100).",
        ]
    return "\n".join(lines) + "\n"
