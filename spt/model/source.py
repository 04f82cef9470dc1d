"""Where a base model lies: a Hub id, a local folder, or a GGUF file, which becomes a folder once.

After `resolve_base` the rest of the pipeline knows ids and folders only: a GGUF file is dequantized beside itself, so
that an adapter has a base to name. Trade-off: the dequantized copy takes four bytes a parameter on disk.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from filelock import FileLock
from safetensors import SafetensorError

from spt.artifact import dump_json, read_json, write_atomically
from spt.errors import ModelError
from spt.progress import say

_BLOCK, _BLOCKS = 1 << 16, 32
"""Of a file larger than all blocks together, so many blocks are read for its fingerprint, at even distances."""

READ_ERRORS = (OSError, ValueError, ImportError, KeyError, RuntimeError, SafetensorError)
"""What transformers and peft raise for a folder that is missing, foreign or damaged."""

GIVE_A_MODEL = (
    "Give a Hub id that exists (and is reachable: offline, a folder), a folder written by save_pretrained, or a .gguf "
    "file."
)
"""What to do where a model cannot be read."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; theirs run over many."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def resolve_base(base: str) -> str:
    """Return a Hub id or a folder for a base; a `.gguf` file is dequantized to `FILE.dequantized/` first.

    Raises ModelError for a path that is not there.
    """
    if not is_path(base):
        return base
    path = Path(base).expanduser()
    if path.suffix == ".gguf":
        return str(_dequantize(path).resolve())
    if not (path / "config.json").exists():
        kind = "is not there" if not path.exists() else "holds no config.json, so it is no model folder"
        raise ModelError(f"model.base: {base} {kind}; give a Hub id, a folder of save_pretrained, or a .gguf file")
    return str(path.resolve())


def is_path(base: str) -> bool:
    """Return whether a base names a place on disk: it exists, or cannot be a Hub id (`owner/name` at most)."""
    return Path(base).exists() or base.startswith((".", "/", "~")) or base.endswith(".gguf") or base.count("/") > 1


def fingerprint(base: str, revision: str | None = None) -> dict[str, Any]:
    """Return what identifies a base in a stage's key: id and revision, or a hash of the files.

    Neither the path counts nor a model card (README.md), which is written anew when scores come. Of a file above 2 MiB
    the size and blocks at even distances are hashed, so that a 70-billion-parameter folder takes a blink.
    """
    path = Path(base).expanduser()
    if not path.exists():
        return {"id": base, "revision": revision}
    inside = (file for file in path.rglob("*") if file.is_file() and file.name != "README.md")
    files = sorted(inside) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        relative = file.relative_to(path).as_posix()
        digest.update(f"{relative}:{file.stat().st_size}:".encode() + _hash_blocks(file))
    return {"sha256": digest.hexdigest()}


def _hash_blocks(file: Path) -> bytes:
    digest = hashlib.sha256()
    spare = max(file.stat().st_size - _BLOCK * _BLOCKS, 0)
    with file.open("rb") as stream:
        for block in range(_BLOCKS):
            stream.seek(block * _BLOCK + spare * block // (_BLOCKS - 1))
            digest.update(stream.read(_BLOCK))
    return digest.digest()


def _dequantize(file: Path) -> Path:
    if not file.is_file():
        raise ModelError(f"model.base: {file} is not there; give a Hub id, a folder, or a .gguf file")
    folder = file.with_name(f"{file.name}.dequantized")
    made_of = {"gguf": fingerprint(str(file))}
    if _is_made_of(folder, made_of):
        return folder
    if not os.access(file.parent, os.W_OK):
        raise ModelError(
            f"{file.parent} cannot be written, so {file.name} cannot be dequantized; copy the file elsewhere"
        )
    with FileLock(file.with_name(f".{file.name}.lock")):
        if not _is_made_of(folder, made_of):
            say(f"dequantizing {file.name} to {folder} (once)")
            _write_dequantized(file, folder, made_of)
    return folder


def _is_made_of(folder: Path, made_of: dict[str, Any]) -> bool:
    return (folder / "spt.json").exists() and read_json(folder / "spt.json") == made_of


def _write_dequantized(file: Path, folder: Path, made_of: dict[str, Any]) -> None:
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Releases before GgufConfig always dequantize.
    known = hasattr(transformers, "GgufConfig")
    dense = {"quantization_config": transformers.GgufConfig(dequantize=True)} if known else {}
    transformers.utils.logging.disable_progress_bar()  # it would tear ours
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            str(file.parent),
            gguf_file=file.name,
            dtype=torch.float32,
            local_files_only=True,
            **dense,
        )
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name, local_files_only=True)
    except Exception as error:  # the file is the user's, and the readers raise many kinds
        raise ModelError(f"{file}: cannot be read as a GGUF model ({type(error).__name__}: {error})") from error
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    write_atomically(temporary / "spt.json", dump_json(made_of))
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)
