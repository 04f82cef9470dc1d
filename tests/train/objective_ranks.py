"""Run by each of two ranks: is the gradient of a global step the same under DDP and FSDP2 as in one process?

Each case prints `KIND WRAPPER SHARE loss-difference gradient-difference` on rank 0, as shares of the plain one.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(Path(__file__).parents[1]))
from fakes import byte_level, tiny_model

import spt.model.head
from spt.batch import collate
from spt.loss import BicoLoss, CausalLoss, Draw
from spt.model.adapter import add_lora
from spt.model.attention import fit_attention
from spt.model.head import recompute_activations
from spt.records import Example, Tag

KINDS = ("whole", "tied", "adapter", "tag", "masked")
MASKED = next(draw for draw in (Draw(0, 0, step, mask_id=9) for step in range(20)) if draw.toss())


def examples():
    generator = torch.Generator().manual_seed(0)
    rows = [tuple(torch.randint(1, 300, (length,), generator=generator).tolist()) for length in (9, 3, 7, 12, 2, 8)]
    return [Example(str(n), "original", row, row) for n, row in enumerate(rows)]


def build(kind):
    model = tiny_model("llama", byte_level(), attention="sdpa", tie_word_embeddings=kind in ("tied", "tag"))
    if kind in ("adapter", "tag"):
        tag = Tag(token_id=7) if kind == "tag" else None
        model = add_lora(model, {"r": 4, "init_lora_weights": False}, tag, seed=0)
    fit_attention(model, packing=True)
    recompute_activations(model)
    return (BicoLoss if kind == "masked" else CausalLoss)(model.train())


def batch_of(kind, rows):
    return BicoLoss.collate(rows, 0, MASKED) if kind == "masked" else collate(rows, 0, packing=True)


def wrap(objective, wrapper):
    if wrapper == "ddp":
        return torch.nn.parallel.DistributedDataParallel(objective)
    for layer in objective.model.get_decoder().layers:
        fully_shard(layer)
    fully_shard(objective, reshard_after_forward=True)
    return objective


def gradient(objective):
    found = [weight.grad for weight in objective.parameters() if weight.requires_grad]
    return torch.cat([(part.full_tensor() if hasattr(part, "full_tensor") else part).flatten() for part in found])


def learn(run, batch):
    loss = run(**batch.inputs("cpu"))
    (loss * dist.get_world_size()).backward()
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    spt.model.head._CHUNK = {"cpu": 5 * len(byte_level())}
    rows = examples()
    for kind in KINDS:
        plain = build(kind)
        loss = plain(**batch_of(kind, rows).inputs("cpu"))
        loss.backward()
        wanted = gradient(plain)
        for wrapper in ("ddp", "fsdp2"):
            for share, mine in {"halves": rows[rank::2], "none": [] if rank else rows}.items():
                objective = build(kind)
                total = learn(wrap(objective, wrapper), batch_of(kind, mine))
                far = float((gradient(objective) - wanted).norm() / wanted.norm())
                if rank == 0:
                    print(kind, wrapper, share, abs(total.item() / loss.item() - 1), far)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
