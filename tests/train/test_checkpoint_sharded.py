"""Sharded models (torch's own `fully_shard`, two processes over gloo): saved in parts, read by any number of ranks."""

import subprocess
import sys

import pytest
import sharded_ranks as ranks
import torch
from experiment import environment, free_port
from fakes import byte_level, metaspace, tiny_model

from spt.checkpoint import State, generators, load_checkpoint, save_checkpoint
from spt.model import load_trained

IDS = torch.tensor([[3, 5, 9, 12, 7], [8, 3, 9, 3, 4]])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What two ranks left, and beside it the same training by this process alone."""
    folder = tmp_path_factory.mktemp("sharded")
    for name, tokenizer in (("reserved", metaspace()), ("none", byte_level())):
        tiny_model("llama", tokenizer, tie_word_embeddings=True).save_pretrained(folder / f"base-{name}")
        tokenizer.save_pretrained(folder / f"base-{name}")
    alone = {}
    for kind in ranks.KINDS:
        prepared, alone[kind] = ranks.make(ranks.config_of(folder, kind))
        ranks.step(alone[kind], prepared.tag.token_id, 3)
        save_checkpoint(folder / f"{kind}-one", State(step=3), alone[kind], [generators()], 1)
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    group["PYTHONPATH"] = ":".join(filter(None, sys.path))
    command = [sys.executable, ranks.__file__, str(folder)]
    processes = [
        subprocess.Popen(command, env=environment() | group | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [process.communicate(timeout=240)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(text[-3000:] for text in said)
    return folder, alone


@pytest.mark.parametrize("kind", sorted(ranks.KINDS))
def test_what_two_ranks_wrote_one_reads_with_its_optimizer(trained, kind):
    folder, alone = trained
    path = folder / kind / "step-000003"
    parts = sorted(file.name for file in path.glob("*.safetensors"))
    assert [name[:11] for name in parts] == ["shard-00001", "shard-00002"]
    _, own = ranks.make(ranks.config_of(folder, kind))
    assert load_checkpoint(path, own, 0, 9) == State(step=3)
    assert ranks.equal(ranks.moments(own), torch.load(folder / kind / "moments.pt"))
    pairs = zip(ranks.weights(own), ranks.weights(alone[kind]), strict=True)
    assert all(torch.allclose(sharded, whole, atol=1e-5) for sharded, whole in pairs)


@pytest.mark.parametrize("kind", sorted(ranks.KINDS))
def test_the_final_model_of_a_sharded_training_is_that_of_an_unsharded_one(trained, kind):
    folder, alone = trained
    final = folder / f"{kind}-train/final"
    model, _ = load_trained(str(final))
    with torch.no_grad():
        wanted = alone[kind].model.model.eval()(IDS).logits
        assert torch.allclose(model(IDS).logits, wanted, atol=1e-4)
    assert (final / "adapter_model.safetensors").exists() == (kind == "adapter")
    if kind != "adapter":
        assert model.config.architectures == ["LlamaForCausalLM"]
    assert model.generation_config.suppress_tokens == [ranks.make(ranks.config_of(folder, kind))[0].tag.token_id]
    assert (folder / f"{kind}-train/README.md").read_text() == (final / "README.md").read_text()
