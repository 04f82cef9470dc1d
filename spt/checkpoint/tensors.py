"""Named tensors of a model and its optimizer ⇄ safetensors files, whole or sharded.

    one rank, DDP    trained.safetensors (several of at most 5 GB)   written by rank 0
    FSDP2            shard-00002-model-00001-of-00001.safetensors    one a rank: what it holds, with its offsets

Names tell no layout, so what one number of ranks wrote another reads, sharded or not. Trade-off: sharded files are
torch's own format of distributed checkpoints; `final/` holds the files that other programs read.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import safe_open
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict

from spt.checkpoint.ranks import has_group
from spt.checkpoint.state import Trained, trained_tensors
from spt.errors import MissingError

LARGEST_FILE = "5GB"
_FLAT = StateDictOptions(flatten_optimizer_state_dict=True)
_MODEL, _OPTIMIZER = "model.", "optimizer."

Tensors = dict[str, torch.Tensor]
Values = dict[str, Any]


def is_sharded(model: Any) -> bool:
    """Return whether parameters are spread over ranks (FSDP2's DTensors)."""
    return any(hasattr(parameter, "to_local") for parameter in model.parameters())


def take_apart(trained: Trained) -> tuple[Tensors, Values]:
    """Return the tensors (`model.NAME`, `optimizer.state.NAME.exp_avg`) and the optimizer's other values.

    The tensors are the training's own, not copies. An optimizer that has taken no step is given a state to be filled.
    """
    state: Values = dict(get_optimizer_state_dict(trained.model, _inner(trained.optimizer), options=_FLAT))
    tensors = {_OPTIMIZER + name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
    values = {name: value for name, value in state.items() if not isinstance(value, torch.Tensor)}
    return model_tensors(trained.model) | tensors, values


def model_tensors(model: Any) -> Tensors:
    """Return the model's part of the tensors alone."""
    return {_MODEL + name: tensor for name, tensor in trained_tensors(model).items()}


def put_back(trained: Trained, tensors: Tensors, values: Values) -> None:
    """Set the optimizer to what was taken apart; the model's tensors are its own already."""
    own = ((name, tensor) for name, tensor in tensors.items() if name.startswith(_OPTIMIZER))
    state: Values = {name.removeprefix(_OPTIMIZER): tensor for name, tensor in own}
    set_optimizer_state_dict(trained.model, _inner(trained.optimizer), state | values, options=_FLAT)


def _inner(optimizer: Any) -> Any:
    return getattr(optimizer, "optimizer", optimizer)  # accelerate's wrapper is in torch's way


def write_whole(folder: Path, tensors: Tensors) -> None:
    """Write tensors to files of at most 5 GB."""
    split = split_torch_state_dict_into_shards(
        tensors, filename_pattern="trained{suffix}.safetensors", max_shard_size=LARGEST_FILE
    )
    for file, names in split.filename_to_tensors.items():
        save_file({name: tensors[name].contiguous() for name in names}, folder / file)


def write_shards(folder: Path, tensors: Tensors) -> None:
    """Write this rank's part of sharded tensors; every rank calls it."""
    distributed = _distributed()
    writer = distributed.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    distributed.save(tensors, storage_writer=writer)


def read_into(tensors: Tensors, folder: Path, *, only_model: bool = False) -> None:
    """Fill tensors in place from the files of a folder, however many ranks wrote them.

    Raises ValueError where the names differ; with `only_model` those of the optimizer may be left over.
    """
    files = sorted(folder.glob("*.safetensors"))
    there = {name for file in files for name in _names(file) if not only_model or name.startswith(_MODEL)}
    if there != tensors.keys():
        raise ValueError(f"what is trained differs: {sorted(there ^ tensors.keys())[:3]}")
    spread = any(file.name.startswith("shard-") for file in files)
    if spread or any(hasattr(tensor, "to_local") for tensor in tensors.values()):
        distributed = _distributed()
        reader = distributed.HuggingFaceStorageReader(str(folder))
        with _alone():
            distributed.load(tensors, storage_reader=reader, no_dist=not has_group())
        return
    with torch.no_grad():
        for file in files:
            with safe_open(file, framework="pt") as stored:
                for name in tensors.keys() & set(stored.keys()):
                    tensors[name].copy_(stored.get_tensor(name))


def _names(file: Path) -> list[str]:
    with safe_open(file, framework="pt") as stored:
        return list(stored.keys())


def _distributed() -> Any:
    """Return torch's distributed checkpoints, from a release on that they hold safetensors."""
    from torch.distributed import checkpoint

    if not hasattr(checkpoint, "HuggingFaceStorageReader"):
        raise MissingError(f"torch {torch.__version__} cannot write sharded safetensors; install torch>=2.9")
    return checkpoint


@contextmanager
def _alone() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # it is, on purpose
        yield
