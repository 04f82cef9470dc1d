"""Checkpoints of a whole model: complete or refused, the best one kept, older states still read."""

import json

import pytest
import torch
from fakes import metaspace, tiny_model

import spt.checkpoint.save
import spt.checkpoint.tensors
from spt.checkpoint import (
    State,
    Trained,
    checkpoints,
    generators,
    load_checkpoint,
    load_weights,
    newest_good,
    prune,
    save_checkpoint,
)
from spt.errors import DamagedError, MissingError, WorkError


def make(seed=0):
    model = tiny_model("llama", metaspace(), seed=seed, tie_word_embeddings=True)
    model.model.embed_tokens.requires_grad_(False)  # what is frozen has neither state nor place
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": trained[:3], "weight_decay": 0.1}, {"params": trained[3:]}], lr=1e-2)
    return Trained(model, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=9))


def step(trained, count=1):
    for _ in range(count):
        ids = torch.arange(12).view(2, 6)
        trained.model(input_ids=ids, labels=ids).loss.backward()
        trained.optimizer.step()
        trained.optimizer.zero_grad()
        trained.scheduler.step()


def save(folder, trained, number, keep=9, **values):
    save_checkpoint(folder, State(step=number, **values), trained, [generators()], keep)
    return folder / f"step-{number:06d}"


def contents(trained):
    """Everything that decides the next steps, as one flat list."""
    states = [value for state in trained.optimizer.state.values() for value in state.values()]
    groups = [(group["lr"], group["weight_decay"]) for group in trained.optimizer.param_groups]
    return [*(p.detach().clone() for p in trained.model.parameters()), *states], groups, trained.scheduler.state_dict()


def assert_same(one, other):
    assert one[1:] == other[1:]
    assert len(one[0]) == len(other[0])
    assert all(torch.equal(a, b) for a, b in zip(one[0], other[0], strict=True))


@pytest.mark.parametrize("largest", ["5GB", "20KB"])
def test_a_training_goes_on_from_a_checkpoint_as_if_nothing_had_happened(tmp_path, monkeypatch, largest):
    monkeypatch.setattr(spt.checkpoint.tensors, "LARGEST_FILE", largest)
    first, other = make(), make(seed=1)
    step(first, 3)
    path = save(tmp_path, first, 3, best=0.5, best_step=2, stale_evaluations=1, counts={"truncated": 2})
    assert len(list(path.glob("trained*.safetensors"))) == (1 if largest == "5GB" else 11)
    drawn = torch.rand(3)
    other.model.model.embed_tokens.load_state_dict(first.model.model.embed_tokens.state_dict())
    state = load_checkpoint(path, other, 0, 9)
    assert state == State(step=3, best=0.5, best_step=2, stale_evaluations=1, counts={"truncated": 2})
    assert torch.equal(torch.rand(3), drawn)
    step(first)
    step(other)
    assert_same(contents(first), contents(other))


def test_the_weights_alone_come_back_and_the_optimizer_stays(tmp_path):
    trained = make()
    step(trained)
    path, best = save(tmp_path, trained, 1), contents(trained)
    step(trained, 2)
    before = contents(trained)
    load_weights(path, trained)
    parameters = len(list(trained.model.parameters()))
    after = contents(trained)
    assert_same((after[0][:parameters],), (best[0][:parameters],))
    assert_same((after[0][parameters:], *after[1:]), (before[0][parameters:], *before[1:]))


def test_a_state_from_before_the_best_was_kept_still_loads(tmp_path):
    trained = make()
    step(trained)
    path = save(tmp_path, trained, 1)
    written = json.loads((path / "state.json").read_text())
    old = {name: written[name] for name in ("step", "nats", "target_tokens", "total_tokens", "counts")}
    (path / "state.json").write_text(json.dumps(old))
    assert load_checkpoint(path, make(), 0, 9) == State(step=1)


@pytest.mark.parametrize("file", ["trained.safetensors", "optimizer.pt"])
@pytest.mark.parametrize("damage", ["bit", "cut", "lost"])
def test_damage_is_refused_by_file_and_the_newest_good_checkpoint_is_named(tmp_path, file, damage):
    trained = make()
    paths = [save(tmp_path, trained, number) for number in (1, 2, 3)]
    for path in paths[1:]:
        data = bytearray((path / file).read_bytes())
        data[len(data) // 2] ^= 4
        (path / file).write_bytes(data if damage == "bit" else data[:-1])
        if damage == "lost":
            (path / file).unlink()
    before = contents(trained)
    with pytest.raises(DamagedError, match=rf"step-000003: .*{file}.*Remove this folder to go on from step-000001"):
        load_checkpoint(paths[2], trained, 0, 9)
    assert_same(contents(trained), before)
    assert newest_good(tmp_path) == paths[0]


@pytest.mark.parametrize("load", [lambda *given: load_checkpoint(*given, 0, 9), load_weights])
def test_a_reader_that_is_not_installed_is_no_damage(tmp_path, monkeypatch, load):
    trained = make()
    path = save(tmp_path, trained, 1)

    def missing(*arguments, **options):
        raise MissingError("torch 2.6 cannot; install torch>=2.9")

    monkeypatch.setattr(spt.checkpoint.save, "read_into", missing)
    with pytest.raises(MissingError, match=r"install torch>=2\.9"):
        load(path, trained)


def test_a_checkpoint_under_another_name_is_refused(tmp_path):
    path = save(tmp_path, make(), 1)
    path.rename(tmp_path / "step-000007")
    with pytest.raises(DamagedError, match="its step is 1, which is not the one in its name"):
        load_checkpoint(tmp_path / "step-000007", make(), 0, 9)


def test_a_write_that_fails_leaves_the_older_checkpoint_and_no_half_one(tmp_path, monkeypatch):
    trained = make()
    good = save(tmp_path, trained, 1)

    def full(*arguments):
        raise RuntimeError("No space left on device")

    monkeypatch.setattr(spt.checkpoint.save.torch, "save", full)  # after the weights, before state.json
    with pytest.raises(WorkError, match=r"cannot be written \(No space left on device\); make room and run again"):
        save(tmp_path, trained, 2)
    assert checkpoints(tmp_path) == [good] == [newest_good(tmp_path)]


def test_the_best_and_the_last_complete_checkpoint_outlive_the_limit(tmp_path):
    trained = make()
    for number in (1, 2, 3, 4, 5):
        save(tmp_path, trained, number, keep=2, best=0.7, best_step=2)
    assert [path.name[-1] for path in checkpoints(tmp_path)] == ["2", "4", "5"]
    for number in (4, 5):
        (tmp_path / f"step-00000{number}/trained.safetensors").write_bytes(b"cut")
    prune(tmp_path, 1)
    assert [path.name[-1] for path in checkpoints(tmp_path)] == ["2", "5"], "2 is the last that is complete"
    assert not list(tmp_path.glob(".*"))
