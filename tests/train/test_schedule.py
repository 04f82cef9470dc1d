"""The schedule and the optimizer: functions of global steps, and decay where transformers has it."""

from typing import get_args

import pytest
import torch
from experiment import write_experiment
from fakes import byte_level, tiny_model
from transformers import Trainer

from spt.config import Train, read_config
from spt.config.train import Schedule
from spt.errors import InputError
from spt.preprocess import preprocess
from spt.train.setup import make_optimizer, make_scheduler, prepare

KWARGS = {"cosine_with_min_lr": {"min_lr_rate": 0.1}}


def rates(steps=40, **settings):
    settings = Train(learning_rate=1.0, **settings)
    schedule = make_scheduler(torch.optim.SGD([torch.zeros(1)], 1.0), settings, steps)
    found = []
    for _ in range(steps):
        found.append(schedule.get_last_lr()[0])
        schedule.optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("name", get_args(Schedule))
def test_every_schedule_warms_up_reaches_the_full_rate_and_never_exceeds_it(name):
    found = rates(lr_scheduler_type=name, warmup_ratio=0.25, lr_scheduler_kwargs=KWARGS.get(name, {}))
    assert found[0] == 0.0
    assert found[:11] == sorted(found[:11])
    assert found[10] == max(found) == 1.0
    assert (found[-1] < 0.9) == (not name.startswith("constant"))


def test_the_arguments_of_a_schedule_reach_it():
    assert min(rates(lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs={"min_lr_rate": 0.5})[2:]) >= 0.5
    late = rates(lr_scheduler_type="warmup_stable_decay", lr_scheduler_kwargs={"num_decay_steps": 10})
    assert late[29] == 1.0 > late[32]
    assert rates(lr_scheduler_type="warmup_stable_decay")[35] == 1.0


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("linear", {"power": 2}, r"unknown: power\); it takes none"),
        ("constant", {"value": 2}, "unknown: value"),
        ("polynomial", {"power": "two"}, "it takes lr_end, power"),
        ("polynomial", {"lr_end": 3.0}, "must be smaller than initial lr"),
        ("cosine_with_min_lr", {}, "One of min_lr or min_lr_rate"),
        ("cosine", {"num_training_steps": 3}, "unknown: num_training_steps"),
    ],
)
def test_arguments_that_do_not_fit_a_schedule_are_refused_before_training(tmp_path, name, given, says):
    with pytest.raises(InputError, match=rf"train\.lr_scheduler_kwargs: .*{says}"):
        rates(lr_scheduler_type=name, lr_scheduler_kwargs=given)


def test_wrong_arguments_end_the_preparation(tmp_path):
    path = write_experiment(tmp_path, train={"lr_scheduler_kwargs": {"cycles": 2}})
    preprocess(read_config(path))
    (tmp_path / "run/train").mkdir()
    with pytest.raises(InputError, match=r"unknown: cycles\); it takes num_cycles"):
        prepare(read_config(path), tmp_path / "run/train")


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox"])
def test_weight_decay_falls_where_transformers_lets_it(kind):
    model = tiny_model(kind, byte_level())
    decayed, others = make_optimizer(model, Train(weight_decay=0.1)).param_groups
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    names = set(Trainer.get_decay_parameter_names(None, model))
    assert {id(p) for p in decayed["params"]} == {id(p) for name, p in model.named_parameters() if name in names}
    assert {id(p) for p in others["params"]} == {id(p) for name, p in model.named_parameters() if name not in names}
