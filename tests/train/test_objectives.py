"""Training by masked tokens: the same stream whatever the ranks, a loss that falls, and a model that stays causal."""

import json
from dataclasses import replace

import pytest
import torch
from experiment import log, write_experiment
from streams import examples_of, stream_of
from transformers import AutoModelForCausalLM

from spt.config import read_config
from spt.errors import ConfigError
from spt.loss import OBJECTIVES
from spt.preprocess import preprocess
from spt.train import train
from spt.train.setup import prepare

MASKED = ("bico", "mlm_u")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = write_experiment(tmp_path_factory.mktemp("objectives"), train={"dataloader_num_workers": 0})
    preprocess(read_config(path))
    return path


def contents(steps):
    return [(step.ids, examples_of(step.batches), {b.visible is None for b in step.batches}) for step in steps]


@pytest.mark.parametrize("objective", MASKED)
def test_what_is_masked_depends_on_seed_and_step_alone(path, objective):
    stream = stream_of(path, f"train.objective={objective}")
    whole = contents(stream.steps(0))
    assert {frozenset(kind) for *_, kind in whole} == (
        {frozenset({True}), frozenset({False})} if objective == "bico" else {frozenset({False})}
    )
    finer = replace(stream, train=stream.train.model_copy(update={"micro_batch_size": 1}))
    assert contents(finer.steps(7)) == whole[7:]
    ranks = [replace(stream, rank=rank, world_size=3).steps(0) for rank in range(3)]
    for (ids, shown, kind), *parts in zip(whole, *ranks, strict=True):
        assert all(part.ids == ids for part in parts)
        assert examples_of(batch for part in parts for batch in part.batches) == shown
        assert {batch.visible is None for part in parts for batch in part.batches} == kind


@pytest.mark.parametrize("objective", MASKED)
def test_a_run_learns_masked_tokens_and_ends_as_an_ordinary_causal_model(path, tmp_path, objective):
    config = read_config(
        path,
        [
            f"train.objective={objective}",
            f"output={tmp_path}",
            f"data.segmented={path.parent / 'run'}",
            "train.epochs=8",
            "train.gradient_checkpointing=true",
        ],
    )
    final = train(config) / "final"
    losses = [line["loss"] for line in log(tmp_path) if "loss" in line]
    assert sum(losses[-6:]) < sum(losses[:6]) - 1
    saved = json.loads((final / "config.json").read_text())
    assert saved["model_type"] == "llama"
    assert saved.get("is_causal", True)


@pytest.mark.parametrize("objective", MASKED)
def test_between_two_steps_the_model_answers_like_a_freshly_loaded_one(path, tmp_path, objective):
    config = read_config(path, [f"train.objective={objective}"])
    stream, prepared = prepare(config, path.parent / "run" / "train")
    model = OBJECTIVES[objective](prepared.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in list(stream.steps(0))[:4]:
        for batch in step.batches:
            model.train()(**batch.inputs("cpu")).backward()
        optimizer.step()
        optimizer.zero_grad()
    prepared.model.save_pretrained(tmp_path)
    fresh, mine = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval(), prepared.model.eval()
    asked = prepared.tokenizer("Ada Birch made", return_tensors="pt")
    with torch.no_grad():
        assert torch.allclose(mine(**asked).logits, fresh(**asked).logits, atol=1e-5)
        longer = torch.cat([asked.input_ids, torch.tensor([[40, 41, 42]])], dim=1)
        seen = mine(input_ids=longer).logits[:, : asked.input_ids.shape[1]]
    assert torch.allclose(seen, fresh(**asked).logits, atol=1e-5), "what comes later must not be seen"
    answers = [m.generate(**asked, max_new_tokens=8, do_sample=False, pad_token_id=0) for m in (mine, fresh)]
    assert answers[0].tolist() == answers[1].tolist()


@pytest.mark.parametrize("objective", MASKED)
def test_packing_is_refused_where_whole_rows_are_attended_to(path, objective):
    with pytest.raises(ConfigError, match=f"packing: {objective} attends to both sides of whole rows"):
        read_config(path, [f"train.objective={objective}", "train.packing=true"])
