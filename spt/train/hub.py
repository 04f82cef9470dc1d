"""`--push-to-hub`: a finished `final/` with its card → a repository of the Hub.

In: a finished run. Out: the address of what was pushed. Trade-off: it comes after the stage is finished and belongs to
no key, so a push that fails loses nothing, and the same command pushes again.
"""

from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # documented, not listed

from spt.artifact import read_json
from spt.config import Config
from spt.errors import ConfigError, InputError, WorkError
from spt.model.source import first_line, is_path
from spt.progress import is_main_process, say
from spt.train.card import name_on_card
from spt.train.setup import train_folder


def check_push(config: Config) -> str:
    """Return the repository's id, `train.hub_model_id` or the run's name. Call it before training.

    Raises ConfigError for a name that the Hub does not take, InputError without a token of the Hub.
    """
    name = config.train.hub_model_id or config.name
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(f"train.hub_model_id: {first_line(error)}; give OWNER/NAME") from error
    if get_token() is None:
        raise InputError("--push-to-hub: no token of the Hub is there; run `hf auth login`, or set HF_TOKEN")
    return name


def push_to_hub(config: Config) -> str | None:
    """Return the address that `final/` was pushed to; only the main process pushes (None on the others).

    A new repository is private. Raises WorkError where the Hub does not take it, InputError for an adapter whose base
    nobody else can load.
    """
    if not is_main_process():
        return None
    name, final = check_push(config), train_folder(config) / "final"
    _check_base(final, Path(config.output))
    api = HfApi(library_name="spt")
    try:
        repository = api.create_repo(name, private=True, exist_ok=True).repo_id
        name_on_card(train_folder(config), repository)
        api.upload_folder(repo_id=repository, folder_path=final, commit_message=f"spt: {config.name}")
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        raise WorkError(
            f"{final}: finished, but not pushed to {name} ({first_line(error)}). Nothing is lost; the same command "
            "pushes it again."
        ) from error
    address = f"{api.endpoint}/{repository}"
    say(f"pushed to {address}")
    return address


def _check_base(final: Path, run: Path) -> None:
    if not (final / "adapter_config.json").exists():
        return
    base: Any = read_json(final / "adapter_config.json").get("base_model_name_or_path")
    if is_path(str(base)):
        raise InputError(
            f"{final}: an adapter of {base}, which lies on this machine alone, so nobody could load it from the Hub. "
            f"Run `spt merge {run}` and push the merged model: `hf upload OWNER/NAME {run}/train/merged`"
        )
