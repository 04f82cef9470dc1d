"""Run by each of two ranks: train sharded models, save and reload their checkpoints, write their final folders.

Usage: sharded_ranks.py FOLDER, with the bases in FOLDER/base-*. Rank 0 leaves the optimizer's moments in moments.pt.
"""

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from spt.checkpoint import State, Trained, check_finite, generators, is_sharded, load_checkpoint, save_checkpoint
from spt.config import Config, Model
from spt.errors import DamagedError, NonFiniteError
from spt.model import load_tokenizer, prepare_model
from spt.train.save import save_final

LORA = {"r": 4, "lora_alpha": 8}
KINDS = {"whole": ("reserved", None), "adapter": ("reserved", LORA), "grown": ("none", LORA)}
"""What is trained: (the base's tokenizer, LoRA). A tokenizer without a reserved token makes the vocabulary grow."""


def config_of(folder, kind):
    base, lora = KINDS[kind]
    model = {"base": str(folder / f"base-{base}"), "lora": lora}
    return Config(name=kind, data={"train": {"path": "x"}}, model=model, permute={"order_tag": "auto"})


class Objective(torch.nn.Module):
    """The model as the loop wraps it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, labels=ids).loss


def make(config, *, shard=False):
    settings = Model(**config.model.model_dump())
    prepared = prepare_model(settings, load_tokenizer(settings), "auto", seed=0)
    objective = Objective(prepared.model)
    if shard:
        for layer in prepared.model.get_decoder().layers:
            fully_shard(layer)
        fully_shard(objective)
    optimizer = torch.optim.AdamW([p for p in objective.parameters() if p.requires_grad], lr=1e-2, fused=True)
    return prepared, Trained(objective, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=9))


def step(trained, tag, count):
    ids = torch.tensor([[tag, 5, 9, 12, 7], [8, tag, 9, 3, 4]])
    for _ in range(count):
        trained.model(ids).backward()
        trained.optimizer.step()
        trained.optimizer.zero_grad()
        trained.scheduler.step()


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def moments(trained):
    return [whole(state[name]) for state in trained.optimizer.state.values() for name in ("step", "exp_avg_sq")]


def weights(trained):
    return [whole(p.detach()) for p in trained.model.parameters()]


def equal(one, other):
    return len(one) == len(other) > 0 and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def check(folder, kind):
    config, rank = config_of(folder, kind), dist.get_rank()
    prepared, trained = make(config, shard=True)
    assert is_sharded(trained.model)
    step(trained, prepared.tag.token_id, 3)
    states = [None, None]
    dist.all_gather_object(states, generators())
    save_checkpoint(folder / kind, State(step=3), trained, states, 2)
    dist.barrier()
    _, again = make(config, shard=True)
    assert load_checkpoint(folder / kind / "step-000003", again, rank, 9) == State(step=3)
    assert equal(weights(again), weights(trained))
    assert equal(moments(again), moments(trained))
    # What one process wrote, two read, sharded.
    one = folder / f"{kind}-one" / "step-000003"
    assert load_checkpoint(one, again, rank, 9) == State(step=3)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights(again), weights(trained), strict=True))
    kept = moments(trained)
    if rank == 0:
        torch.save(kept, folder / kind / "moments.pt")
    step(trained, prepared.tag.token_id, 0)
    trained.model.eval()(torch.tensor([[5, 6]]))  # leaves the root unsharded, as an evaluation would
    save_final(config, prepared, folder / f"{kind}-train")


def check_damage_is_every_ranks(folder):
    config, rank = config_of(folder, "whole"), dist.get_rank()
    _, trained = make(config, shard=True)
    path = folder / "whole" / "step-000003"
    shard = sorted(path.glob("shard-*"))[-1]
    if rank == 0:
        good = shard.read_bytes()
        shard.write_bytes(good[:-4] + b"\x00\x00\x00\x01")
    dist.barrier()
    with pytest.raises(DamagedError, match=f"{shard.name} holds other bytes"):
        load_checkpoint(path, trained, rank, 9)
    dist.barrier()
    if rank == 0:
        shard.write_bytes(good)
        next(trained.model.parameters()).to_local().view(-1)[0] = float("nan")
    with pytest.raises(NonFiniteError, match="step 3"):
        check_finite(trained.model, 3)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    for name in KINDS:
        check(Path(sys.argv[1]), name)
    with torch.no_grad():
        check_damage_is_every_ranks(Path(sys.argv[1]))
    dist.barrier()
    dist.destroy_process_group()
