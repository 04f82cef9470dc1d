"""What is augmented is cut and stored with the corpus; its entries belong to the stage's key."""

import pytest
from experiment import write_experiment

from spt.artifact import read_json
from spt.config import read_config
from spt.encode import IGNORED
from spt.errors import StaleError
from spt.preprocess import preprocess, preprocess_key, read_segmented
from spt.train.setup import prepare

BRIDGE = [{"identity_bridge": {"templates": ["Made by {who}: {who}."], "patterns": ["{who} made {what}."]}}]
CONTEXT = [{"masked_context": {}}]


def config(folder, *overrides, **sections):
    return read_config(write_experiment(folder, **sections), overrides)


@pytest.mark.parametrize("shard_size", [7, 1000])
def test_made_records_are_stored_behind_theirs_whatever_the_shards(tmp_path, shard_size):
    folder = preprocess(config(tmp_path, f"data.shard_size={shard_size}", augment=BRIDGE))
    rows = list(read_segmented(folder))
    made = [row for row in rows if "/bridge-" in row.id]
    assert len(rows) == 48
    assert [row.text for row in made][:2] == ["Made by Ada Birch: Ada Birch.", "Made by Ben Crane: Ben Crane."]
    assert rows[rows.index(made[1]) - 1].id == "1-0"
    assert len(made[0].units) == 6
    counts = read_json(folder / "manifest.json")["counts"]
    assert counts["augmented"] == {"identity_bridge": 8, "identity_bridge: made_before": 32}


def test_only_stored_entries_belong_to_the_key_of_the_data(tmp_path):
    plain, bridged, masked = (preprocess_key(config(tmp_path, augment=entries)) for entries in ([], BRIDGE, CONTEXT))
    assert plain == masked
    assert plain != bridged


def test_a_run_that_shares_data_must_have_its_stored_entries(tmp_path):
    shared = preprocess(config(tmp_path / "a"))
    borrowed = f"data.segmented={shared}"
    assert preprocess(config(tmp_path / "b", borrowed, augment=CONTEXT)) == shared
    with pytest.raises(StaleError, match=r"augment: \[\] -> "):
        preprocess(config(tmp_path / "c", borrowed, augment=BRIDGE))


def test_a_trained_example_has_a_context_and_general_text_of_a_mix_has_none(tmp_path):
    (tmp_path / "mix.jsonl").write_text("".join(f'{{"text": "General {n}."}}\n' for n in range(20)))
    settings = config(tmp_path, f"data.mix.path={tmp_path / 'mix.jsonl'}", augment=CONTEXT)
    preprocess(settings)
    (tmp_path / "run" / "train").mkdir()
    stream, prepared = prepare(settings, tmp_path / "run" / "train")
    separator = prepared.tokenizer.convert_tokens_to_ids("[SEP]")
    seen = set()
    for step in stream.steps(0):
        for batch in step.batches:
            for ids, labels in zip(batch.input_ids.tolist(), batch.labels.tolist(), strict=True):
                text = prepared.tokenizer.decode([label for label in labels if label != IGNORED])
                seen.add((text.startswith("General"), separator in ids))
                assert separator not in labels
    assert seen == {(True, False), (False, True)}
