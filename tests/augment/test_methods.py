"""Every method file, laid over the demo, gives an experiment whose examples can be drawn."""

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from fakes import byte_level

from spt.augment import augmented, make_augmenters
from spt.config import read_config
from spt.corpus import read_records, stop
from spt.encode import IGNORED, Encoder
from spt.permute import draw_ordering
from spt.records import Tag
from spt.segment import make_segmenter

ROOT = Path(__file__).parents[2]
METHODS = sorted((ROOT / "configs" / "methods").glob("*.yaml"))
OF_THE_DESIGN = {
    "baseline", "spt", "spt-order-tag", "token-reversal", "word-reversal", "entity-reversal", "random-segment-reversal",
    "ngram-permutation", "bico", "mlm-u", "masked-context", "identity-bridge", "reverse-statements",
    "rotation-order-tag", "mentions-order-tag", "fim",
}  # fmt: skip


def test_every_method_of_the_design_has_its_file():
    assert {path.stem for path in METHODS} >= OF_THE_DESIGN


def experiment(method, folder):
    path = folder / "experiment.yaml"
    path.write_text(f"extends: [{ROOT}/configs/demo/base.yaml, {method}]\nname: {method.stem}\n")
    corpus = ROOT / "data" / "fictional_people" / "train.jsonl"
    return read_config(path, [f"data.train.path={corpus}"])


@pytest.mark.parametrize("method", METHODS, ids=lambda path: path.stem)
def test_an_example_of_every_order_of_a_method_is_drawn_whole(method, tmp_path):
    config = experiment(method, tmp_path)
    records = list(islice(read_records(config.data.train, reject=stop), 2))
    records = list(augmented(records, make_augmenters(config.augment), Counter()))
    segmentations = make_segmenter(config.segment).segment(records)
    tag = Tag(token_id=7) if config.permute.order_tag else None
    encoder = Encoder(byte_level(), tag, max_length=10_000)
    orders = Counter()
    for epoch in range(12):
        orderings = [
            draw_ordering(
                segmentation, config.permute, config.segment, seed=config.seed, epoch=epoch, augment=config.augment
            )
            for segmentation in segmentations
        ]
        for record, example in zip(records, encoder.encode(orderings), strict=True):
            orders[example.order] += 1
            learned = byte_level().decode([label for label in example.labels[:-1] if label != IGNORED])
            signs = [*config.permute.fim_sentinels, config.permute.delimiter or ""]
            for sign in filter(None, signs):
                learned = learned.replace(sign, "")
            assert sorted("".join(learned.split())) == sorted("".join(record.text.split()))
            assert (7 in example.input_ids) == (tag is not None and example.order != "original")
    assert set(orders) == {order for order, weight in config.permute.orders.items() if weight}


@pytest.mark.parametrize("method", METHODS, ids=lambda path: path.stem)
def test_a_method_file_says_its_source_and_whether_it_was_run(method):
    opening = method.read_text(encoding="utf-8").partition("\n\n")[0]
    comment = "".join(line for line in opening.splitlines(keepends=True) if line.startswith("#"))
    assert "arXiv" in comment or "EMNLP" in comment or "Our own" in comment
