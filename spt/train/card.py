"""The model card: what was trained on what, how well it does, and how to use it.

    card.json    what only training knows, written with the final model
    README.md    the card; a copy lies in `final/`, so that it goes where the model goes

In: `card.json`, the manifests, and the scores once there are any. Out: Markdown with the Hub's metadata before it.
Trade-off: the card is made again from files whenever scores come, so a note written into it by hand is lost.
"""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCardData
from jinja2 import Environment, StrictUndefined

from spt.artifact import dump_json, read_json, versions, write_atomically
from spt.config import Config
from spt.model import Prepared, fingerprint
from spt.model.source import is_path
from spt.records import DIRECTIONS
from spt.train.public import command_line, public
from spt.train.setup import segmented_folder

_VERSIONS = ("spt-llm", "torch", "transformers", "accelerate", "peft", "tokenizers")
_SECTIONS = ("seed", "data", "segment", "augment", "permute", "model", "train")


def note_facts(config: Config, prepared: Prepared, folder: Path) -> None:
    """Write `folder/card.json`, and the card as far as it is known."""
    tag, base = prepared.tag, config.model.base
    name = None if tag is None else tag.text or prepared.tokenizer.convert_ids_to_tokens(tag.token_id)
    values = config.model_dump(mode="json")
    facts = {
        "name": config.name,
        "run": config.output,
        "base": base,
        "hub_base": None if base is None or is_path(base) else base,
        "adapter": config.model.lora is not None and not prepared.grown,
        "hub_id": config.train.hub_model_id,
        "tag": None if tag is None else {"name": name, "token_id": tag.token_id},
        "config": {section: values[section] for section in _SECTIONS},
        "command": command_line(config),
        "data": _data(segmented_folder(config)),
        "versions": versions(*_VERSIONS),
    }
    write_atomically(folder / "card.json", dump_json(public(facts)) + "\n")
    refresh_card(folder)


def name_on_card(folder: Path, repository: str) -> None:
    """Make the card load the model from its repository on the Hub, as its readers there will."""
    path = folder / "card.json"
    if path.exists():
        write_atomically(path, dump_json(read_json(path) | {"hub_id": repository}) + "\n")
        refresh_card(folder)


def _data(folder: Path) -> dict[str, Any]:
    """Return what the manifest of segmented data says, as far as a reader of the card cares."""
    if not (folder / "manifest.json").exists():
        return {}
    manifest = read_json(folder / "manifest.json")
    counts, source = manifest["counts"], (manifest["key"].get("data") or {}).get("train")
    return {
        "counts": {name: counts[name] for name in ("records", "sentences", "units") if name in counts},
        "units_per_record": round(counts["units"] / max(counts["records"], 1), 2),
        "segmenters": counts.get("segmenters", {}),
        "fallbacks": counts.get("fallbacks", {}),
        "rejects": counts.get("rejects", {}),
        "files": source.get("files", {}) if isinstance(source, Mapping) else {},
    }


def refresh_card(folder: Path) -> None:
    """Write the card of a training folder (and its copy in `final/`) from what is known now.

    Call it once scores have come. A folder without a trained model is left as it is; unchanged facts give equal bytes.
    """
    if not (folder / "card.json").exists():
        return
    facts = read_json(folder / "card.json")
    text = resources.files("spt.train").joinpath("card.md.j2").read_text(encoding="utf-8")
    environment = Environment(  # noqa: S701  # Markdown has nothing to escape
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    card = environment.from_string(text).render(
        **facts,
        metadata=_metadata(facts),
        place=facts["hub_id"] or f"{facts['run']}/train/final",
        merged=f"{facts['run']}/train/merged",
        yaml=yaml.safe_dump(facts["config"], sort_keys=False, allow_unicode=True).rstrip(),
        trained=_if_there(folder / "manifest.json") | _if_there(folder / "timings.json"),
        scores=_scores(folder),
    )
    for place in (folder, folder / "final"):
        write_atomically(place / "README.md", card)


def _metadata(facts: Mapping[str, Any]) -> str:
    """Return the YAML before the card, by the Hub's own class; a base on disk is none that the Hub knows."""
    data = facts["config"]["data"]
    sources = [data[part]["hub"] for part in ("train", "mix") if data.get(part) and data[part].get("hub")]
    metadata = ModelCardData(
        library_name="peft" if facts["adapter"] else "transformers",
        pipeline_tag="text-generation",
        base_model=facts["hub_base"],
        datasets=sources or None,
        tags=["reversal-curse", "semantic-aware-permutation-training", "spt", *(["lora"] if facts["adapter"] else [])],
    )
    return metadata.to_yaml(line_break="\n")


def _if_there(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _scores(folder: Path) -> dict[str, Any] | None:
    """Return the scores of exactly this model: those of another, or of an older training, are left out."""
    evaluate = folder.parent / "evaluate"
    if not (evaluate / "manifest.json").exists():
        return None
    if read_json(evaluate / "key.json").get("model") != fingerprint(str(folder / "final")):
        return None
    summary = read_json(evaluate / "summary.json")
    headline = summary["headline"]
    rows = [(name, summary, name) for name in summary["match_rules"]]
    rows += [(f"{headline}, {name}", group, headline) for name, group in (summary.get("relations") or {}).items()]
    natural = ((summary.get("fluency") or {}).get("natural_order") or {}).get("value")
    return {
        "headline": headline,
        "rules": summary["match_rules"],
        "rows": [(name, *(_figure(group.get(way), metric) for way in DIRECTIONS)) for name, group, metric in rows],
        "natural_order": natural,
        "perplexity": summary.get("perplexity"),
    }


def _figure(figures: Mapping[str, Any] | None, metric: str) -> str:
    """Return a figure with its interval and floor, such as `97.5% [95.0, 99.0], floor 1.2%`."""
    figure = (figures or {}).get(metric)
    if not figure or figure.get("value") is None:
        return "not asked"
    scale, sign = (1, f" {figure['unit']}") if figure.get("unit") else (100, "%")
    low, high = (f"{scale * end:.1f}" if (end := figure.get(name)) is not None else "?" for name in ("low", "high"))
    floor = "" if figure.get("floor") is None else f", floor {scale * figure['floor']:.1f}{sign}"
    return f"{scale * figure['value']:.1f}{sign} [{low}, {high}]{floor}"
