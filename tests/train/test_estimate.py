"""What `--dry-run` says against what a training really keeps, takes and logs."""

import json
import sys

import pytest
import torch
from experiment import rows, spt, write_experiment
from fakes import byte_level, tiny_config, tiny_model

from spt import cli
from spt.batch import collate
from spt.config import Model, read_config
from spt.errors import ConfigError, ModelError
from spt.model.adapter import adapted_layers, add_lora, inputs_as_they_come
from spt.model.attention import fit_attention
from spt.model.lean import keep_less
from spt.preprocess import preprocess
from spt.records import Example
from spt.train.estimate import estimate
from spt.train.footprint import saved_bytes, sketch_model
from spt.train.machine import find_machine
from spt.train.preview import preview

LORA = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}


@pytest.fixture
def base(tmp_path):
    """A model folder without weights: a config and a tokenizer."""
    config = tiny_model("llama", byte_level(), hidden_size=64, num_hidden_layers=3).config
    config.save_pretrained(tmp_path / "base")
    byte_level().save_pretrained(tmp_path / "base")
    return str(tmp_path / "base")


def really_kept(model, batch, dtype):
    """Bytes that autograd keeps of one forward pass, without parameters and their copies in another dtype."""
    shapes = {tuple(parameter.shape) for parameter in model.parameters() if parameter.ndim == 2}
    own = {parameter.data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor):
        copied = tuple(tensor.shape) in shapes or tuple(tensor.shape)[::-1] in shapes
        if tensor.untyped_storage().data_ptr() not in own and not copied:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    layout = {name: value for name, value in batch.inputs("cpu").items() if name not in ("labels", "predictors")}
    precision = torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16")
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with precision, inputs_as_they_come(adapted_layers(model), "cpu"), hooks:
        model.train().get_decoder()(**layout, use_cache=False)
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("lora", [None, LORA])
def test_the_bytes_a_sketch_keeps_are_those_that_autograd_keeps(base, dtype, lora, packing):
    from transformers import AutoConfig, AutoModelForCausalLM

    sketch = sketch_model(Model(base=base, dtype=dtype, lora=lora), byte_level(), None)
    real = AutoModelForCausalLM.from_config(
        AutoConfig.from_pretrained(base), dtype=torch.float32 if lora is None else getattr(torch, dtype)
    )
    model = real if lora is None else add_lora(real, lora, None, 0)
    fit_attention(model, packing=packing)
    keep_less(model)
    examples = [Example(str(length), "original", (7,) * length, (7,) * length) for length in (20, 20, 19, 17, 11, 5)]
    batch = collate(examples, 0, packing=packing)
    kept = really_kept(real, batch, dtype)
    assert [tuple(p.shape) for p in sketch.parameters()] == [tuple(p.shape) for p in model.parameters()]
    assert [p.dtype for p in sketch.parameters()] == [p.dtype for p in model.parameters()]
    assert saved_bytes(sketch, dtype, batch, on_cpu=True) == pytest.approx(kept, rel=0.02)


def test_a_model_of_7_billion_parameters_is_counted_without_its_weights(tmp_path, base):
    shape = tiny_config(
        "llama", hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=32, vocab_size=32000,
    )  # fmt: skip
    (tmp_path / "base/config.json").write_text(json.dumps(shape))
    path = write_experiment(tmp_path, model={"base": base, "from_scratch": None, "dtype": "bfloat16", "lora": None})
    found = estimate(read_config(path), "8xh100")
    assert found.parameters == found.trained == 6_738_415_616  # Llama-2-7B
    whole, sharded = found.memory
    assert whole.optimizer == 8 * found.parameters
    assert sharded.optimizer == pytest.approx(whole.optimizer / 8)
    assert whole.total > found.machine.memory > sharded.total
    assert found.seconds is not None


def test_steps_examples_and_tokens_are_counted_before_and_after_the_corpus_is_cut(tmp_path):
    orders = {"orders": {"original": 1}, "order_tag": None}
    path = write_experiment(tmp_path, permute=orders, train={"epochs": 2, "max_steps": 5})
    config = read_config(path)
    before = preview(config, 1)
    preprocess(config)
    after = preview(config, 1)
    # An epoch of 40 records is 3 steps of 12 and one of 4; the fifth step is the second epoch's first.
    assert (after.records, after.steps_per_epoch, after.steps, after.examples) == (40, 4, 5, 52)
    whole = preview(read_config(path, ["train.max_steps=null"]), 1)
    once = sum(len(after.tokenizer(row["text"])["input_ids"]) + 1 for row in rows())  # and the end token
    assert whole.tokens == 2 * once
    assert before.tokens == after.tokens
    assert whole.examples == 80
    assert after.segmented
    assert not before.segmented


def test_what_augment_adds_is_counted_before_the_corpus_is_cut(tmp_path, capsys):
    asked = {"reverse_statements": {"assistant": {"model": "none"}}}
    path = write_experiment(tmp_path, augment=[{"repeat": {"times": 2}}], permute={"orders": {"original": 1}})
    before = preview(read_config(path), 1)
    preprocess(read_config(path))
    after = preview(read_config(path), 1)
    assert (before.records, before.examples, before.tokens) == (after.records, after.examples, after.tokens)
    assert before.records == 2 * len(rows())
    (tmp_path / "run").rename(tmp_path / "cut")
    path = write_experiment(tmp_path, augment=[asked])
    assert preview(read_config(path), 1).records == len(rows())
    assert "augment.reverse_statements: what a language model adds is counted once" in capsys.readouterr().err


def test_the_largest_micro_batch_is_that_of_a_device(tmp_path):
    path = write_experiment(tmp_path, train={"batch_size": 8, "micro_batch_size": 4})
    assert preview(read_config(path), 1).largest.input_ids.shape[0] == 4
    assert preview(read_config(path), 4).largest.input_ids.shape[0] == 2


def test_a_training_that_has_run_is_timed_by_its_own_rate(tmp_path):
    path = write_experiment(tmp_path, train={"epochs": 1, "eval_steps": None})
    spt("preprocess", path)
    assert estimate(read_config(path), None).rate is None
    spt("train", path)
    rate = estimate(read_config(path), None).rate
    assert rate > 0
    with (tmp_path / "run/train/metrics.jsonl").open("a") as log:
        log.write('{"step": 99, "throu')  # a run was killed while it wrote this line
    assert estimate(read_config(path), None).rate == rate
    assert estimate(read_config(path), "8xh100").rate is None


def test_a_dry_run_fits_80_columns_marks_what_is_not_learned_and_writes_nothing(tmp_path, monkeypatch, capsys):
    path = write_experiment(tmp_path)
    out = call(monkeypatch, capsys, "run", path, "--dry-run", "--on", "4xa100")
    wide = [line for line in out.splitlines() if len(line) > 80]
    assert all(str(tmp_path) in line for line in wide)  # a path is never broken
    assert "[<|bos|>]·" in out
    assert "FSDP2 or ZeRO-3 on 4" in out
    assert not (tmp_path / "run").exists()
    values = json.loads(call(monkeypatch, capsys, "run", path, "--dry-run", "--on", "4xa100", "--json"))
    training = values["training"]
    assert training["machine"] == {"devices": 4, "name": "a100", "memory": 80e9, "flops": 19.5e12}
    assert training["memory"]["DDP on 4"]["total"] > training["memory"]["FSDP2 or ZeRO-3 on 4"]["optimizer"] > 0
    assert values["stages"].keys() == {"preprocess", "train", "evaluate"}


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["spt", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    assert not end.value.code, captured.err
    return captured.out


@pytest.mark.parametrize(
    ("on", "devices", "name"),
    [
        ("64xH100", 64, "h100"),
        ("mi300x", 1, "mi300x"),
        ("2xa100-40gb", 2, "a100-40gb"),
        ("8x4090", 8, "4090"),
        ("4090", 1, "4090"),
    ],
)
def test_devices_that_are_not_there_can_be_named(on, devices, name):
    found = find_machine(on, "bfloat16")
    assert (found.devices, found.name) == (devices, name)
    assert found.peak > 1e14


@pytest.mark.parametrize("on", ["8xabacus", "0", "x", "8x"])
def test_a_device_that_is_not_known_is_refused(on):
    with pytest.raises(ConfigError, match="--on"):
        find_machine(on, "bfloat16")


def test_a_length_beyond_the_models_positions_is_refused_by_a_dry_run(tmp_path):
    config = read_config(write_experiment(tmp_path, train={"max_length": 129}))
    with pytest.raises(ModelError, match="129 tokens, but the model has 128 positions"):
        estimate(config, None)
