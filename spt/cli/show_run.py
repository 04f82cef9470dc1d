"""The last rows of `spt show`: what the experiment's output already holds, and whether this config made it."""

from pathlib import Path
from typing import Any

from rich.text import Text

from spt.artifact import changed_keys, read_json
from spt.config import Config
from spt.errors import MissingError, StaleError
from spt.records import Example


def result_rows(config: Config, examples: list[Example]) -> list[tuple[str, Any]]:
    """Return (stage, cell) of loss, checkpoint, score and report, read from the experiment's output."""
    from spt.checkpoint import checkpoints

    output = Path(config.output)
    final = output / "train" / "final"
    saved = checkpoints(output / "train" / "checkpoints")
    place = str(final) if final.exists() else str(saved[-1]) if saved else "none yet: `spt train CONFIG`"
    summary, page = output / "evaluate" / "summary.json", output / "report.html"
    return [
        ("loss", _losses(config, final, examples)),
        ("checkpoint", Text(place + _otherwise_made(config))),
        ("score", _scores(read_json(summary)) if summary.exists() else Text("none yet: `spt evaluate CONFIG`", "dim")),
        ("report", Text(str(page) if page.exists() else "none yet: `spt report RUN`")),
    ]


def _otherwise_made(config: Config) -> str:
    """Return in what the training that is there differs from this config, versions aside, or nothing."""
    from spt.train.setup import train_folder, train_key

    made = train_folder(config) / "key.json"
    if not made.exists():
        return ""
    try:
        names = [line.partition(":")[0] for line in changed_keys(read_json(made), train_key(config))]
    except StaleError:
        names = ["segment"]
    except MissingError:
        return ""
    names = [name for name in names if not name.startswith(("versions.", "code"))]
    return f"   (made with another configuration: {', '.join(names)})" if names else ""


def _losses(config: Config, final: Path, examples: list[Example]) -> Text:
    if not (final.exists() and examples):
        return Text("of no example" if final.exists() else "not trained yet", "dim")
    from spt.model import load_trained
    from spt.score.likelihood import example_log_probabilities

    model, _ = load_trained(str(final), dtype=config.model.dtype)
    results = example_log_probabilities(model, examples, batch_size=16)
    parts = [
        f"{example.order} {-nats / max(tokens, 1):.2f}"
        for example, (nats, tokens) in zip(examples, results, strict=True)
    ]
    return Text(f"{', '.join(parts)} nats a token, after training")


def _scores(summary: dict[str, Any]) -> Text:
    headline = summary["headline"]
    parts = [
        f"{direction} {summary[direction][headline]['value']:.1%}"
        for direction in ("forward", "reversed")
        if summary.get(direction)
    ]
    return Text(f"{', '.join(parts)} ({headline})")
