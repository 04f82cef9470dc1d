"""A public set from the Hub → its folder on this machine → our files.

In: the name of a public benchmark. Out: what its reader makes of the downloaded files. Trade-off: a file is looked
for by name wherever it lies in the repository, so that a moved folder breaks nothing.
"""

from collections.abc import Sequence
from pathlib import Path

from spt.errors import InputError, MissingError

REPOSITORY = "lberglund/reversal_curse"
LICENCE = f"MIT, as the source: https://huggingface.co/datasets/{REPOSITORY}"


def download(name: str, files: Sequence[str], revision: str | None = None) -> Path:
    """Return the folder that holds `files` of the public repository, downloaded or from the Hub's cache.

    Raises MissingError where it cannot be had, InputError where several folders hold the files.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        patterns = [f"*{file}" for file in files]
        snapshot = Path(snapshot_download(REPOSITORY, repo_type="dataset", revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, OSError) as error:
        raise MissingError(
            f"{REPOSITORY}: not downloaded ({error}). Where the Hub is out of reach, copy its files here, then run: "
            f"spt benchmark make {name} --from FOLDER"
        ) from None
    folders = [path.parent for path in sorted(snapshot.rglob(files[0])) if _complete(path.parent, files)]
    if not folders:
        raise MissingError(f"{snapshot}: no folder holds {', '.join(files)}; try another --revision")
    if len(folders) > 1:
        listed = ", ".join(map(str, folders))
        raise InputError(f"several folders hold {files[0]}: {listed}. Run: spt benchmark make {name} --from FOLDER")
    return folders[0]


def _complete(folder: Path, files: Sequence[str]) -> bool:
    return all((folder / file).is_file() for file in files)
