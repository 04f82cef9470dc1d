"""The model card: the Hub's metadata, the exact command, the scores of this model alone, and nothing private."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch
import yaml
from fakes import metaspace, tiny_model
from huggingface_hub import ModelCard

from spt.artifact import dump_json, read_json
from spt.config import Config
from spt.model import Prepared, fingerprint, load_tokenizer, prepare_model
from spt.records import Tag
from spt.train import refresh_card
from spt.train.card import note_facts
from spt.train.public import public
from spt.train.save import save_final

COUNTS = {"records": 40, "sentences": 44, "units": 100, "segmenters": {"spacy": 40}, "fallbacks": {"too_long": 2}}


def figure(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "floor": 0.01}


SUMMARY = {
    "headline": "exact", "match_rules": {"exact": "equal but for white space"}, "forward": {"exact": figure(0.75)},
    "reversed": {"exact": figure(0.5)}, "relations": {"name_first": {"forward": {"exact": figure(0.25)}}},
    "fluency": {"natural_order": {"value": 0.9}}, "perplexity": {"before": 12.5, "after": 13.0},
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run in the working directory, with segmented data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run/segmented").mkdir(parents=True)
    manifest = {"counts": COUNTS, "key": {"data": {"train": {"files": {"facts.jsonl": "5ac1f6"}}}}}
    (tmp_path / "run/segmented/manifest.json").write_text(json.dumps(manifest))
    return tmp_path / "run"


def config_of(base="owner/base", lora=None, **train):
    return Config(
        name="people", output="run", data={"train": {"hub": "owner/facts"}}, train=train,
        model={"base": base, "lora": lora}, permute={"orders": {"original": 1, "rotated": 2}, "delimiter": " ; "},
    )  # fmt: skip


def evaluate(run, **changes):
    (run / "evaluate").mkdir()
    (run / "evaluate/summary.json").write_text(dump_json(SUMMARY | changes))
    (run / "evaluate/manifest.json").write_text("{}")
    (run / "evaluate/key.json").write_text(json.dumps({"model": fingerprint(str(run / "train/final"))}))


def note(config, run):
    tag = Tag(token_id=3)
    note_facts(config, Prepared(None, metaspace(), tag, grown=False), run / "train")
    return (run / "train/README.md").read_text()


def test_the_metadata_is_the_hubs_and_the_text_tells_data_and_method(run):
    text = note(config_of(lora={"r": 4}), run)
    data = ModelCard(text).data
    assert (data.library_name, data.base_model, data.pipeline_tag) == ("peft", "owner/base", "text-generation")
    assert data.datasets == ["owner/facts"]
    assert {"lora", "reversal-curse"} <= set(data.tags)
    data_shown = ["| records | 40 |", "| units a record | 2.5 |", "spacy: 40", "too_long: 2", "`facts.jsonl`", "5ac1f6"]
    method = ["original: 1.0, rotated: 2.0", "` ; `", "`<unused0>` (token 3)", '"logit_bias": {"3"']
    assert [shown for shown in (*data_shown, *method) if shown not in text] == []
    settings = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.S)[1])
    assert Config.model_validate({"name": "people", **settings}).train == config_of().train
    assert (run / "train/final/README.md").read_text() == text


def test_the_card_shows_steps_and_scores_once_they_are_there_and_stays_the_same_after(run):
    assert "None yet: `spt evaluate` adds them." in note(config_of(), run)
    facts = {"steps": 1200, "epochs": 3.0, "target_tokens": 98765}
    (run / "train/manifest.json").write_text(json.dumps(facts))
    evaluate(run)
    refresh_card(run / "train")
    text = (run / "train/README.md").read_text()
    scores = ["75.0% [65.0, 85.0], floor 1.0%", "50.0% [40.0, 60.0]", "90.0%", "12.50 before"]
    scores += ["| exact, name_first | 25.0% [15.0, 35.0], floor 1.0% | not asked |"]
    wanted = ["| steps | 1,200 (3.0 epochs) |", "98,765", *scores]
    assert [shown for shown in wanted if shown not in text] == []
    refresh_card(run / "train")
    assert (run / "train/final/README.md").read_text() == text
    assert read_json(run / "evaluate/key.json")["model"] == fingerprint(str(run / "train/final")), "still these scores"


def test_the_scores_of_another_model_are_left_out(run):
    note(config_of(), run)
    evaluate(run)
    (run / "train/final/model.safetensors").write_bytes(b"trained anew")
    refresh_card(run / "train")
    assert "None yet" in (run / "train/README.md").read_text()


def test_the_command_is_the_one_typed_without_home_or_secrets(run, monkeypatch):
    arguments = ["train", str(run.parent / "my experiment.yaml"), "--set", "model.revision=hf_" + "a" * 30]
    arguments += ["--set", f"data.questions.path={Path.home()}/q.jsonl"]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/spt", *arguments])
    text = note(config_of(base=str(run.parent / "base"), hub_model_id="owner/people"), run)
    expected = "    spt train 'my experiment.yaml' --set 'model.revision=***' --set 'data.questions.path=~/q.jsonl'\n"
    assert expected in text
    assert str(Path.home()) + "/" not in text
    assert str(run.parent) not in text + (run / "train/card.json").read_text()
    assert ModelCard(text).data.base_model is None, "a folder is none that the Hub knows"
    assert 'place = "owner/people"' in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://me:pa55@host/v1", "https://***@host/v1"),
        ("segment.assistant.extra_body={api_key: abc123}", "segment.assistant.extra_body={api_key: ***}"),
        ({"api_key": "abc", "b": [{"Authorization": "Bearer x"}]}, {"api_key": "***", "b": [{"Authorization": "***"}]}),
        ({"api_key_env": "OPENAI_KEY", "max_new_tokens": 4}, {"api_key_env": "OPENAI_KEY", "max_new_tokens": 4}),
        ("permute.order_tag=<|unused0|>", "permute.order_tag=<|unused0|>"),
    ],
)
def test_secrets_are_hidden_and_nothing_else(value, shown):
    assert public(value) == shown


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft reads what was renamed
@pytest.mark.parametrize("lora", [None, {"r": 4}])
def test_the_cards_own_code_loads_the_model_which_never_writes_the_tag(run, lora, capsys):
    tiny_model("llama", metaspace()).save_pretrained("base")
    metaspace().save_pretrained("base")
    config = config_of(base="base", lora=lora)
    prepared = prepare_model(config.model, load_tokenizer(config.model), "auto", seed=0)
    with torch.no_grad():
        for parameter in prepared.model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.01)
    save_final(config, prepared, run / "train")
    code = re.search(r"```python\n(.*?)```", (run / "train/README.md").read_text(), re.S)[1]
    names = {}
    exec(code, names)  # as a reader of the card would
    assert names["model"].generation_config.suppress_tokens == [prepared.tag.token_id]
    assert prepared.tag.token_id not in names["output"][0].tolist()
    assert capsys.readouterr().out.startswith("Once")
