"""An experiment file says what it means, or an error says which key, which value, and what to write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spt.config import Config, read_config, read_yaml, write_config
from spt.config.read import apply_override
from spt.config.yaml_text import dump_yaml, parse_yaml
from spt.errors import ConfigError

BASE = """
name: a
data: {train: {path: x.jsonl}}
model: {base: some/model}
"""


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "base.yaml"
    path.write_text(BASE)
    return path


ACCEPTED = [
    ("train.learning_rate=2e-5", "train.learning_rate", 2e-5),
    ("train.learning_rate=1", "train.learning_rate", 1.0),
    ("train.epochs=1e1", "train.epochs", 10),
    ("train.gradient_checkpointing=no", "train.gradient_checkpointing", False),
    ("train.gradient_checkpointing=yes", "train.gradient_checkpointing", True),
    ("train.max_steps=", "train.max_steps", None),
    ("name=no", "name", "no"),
    ("name=2024-01-01", "name", "2024-01-01"),
    ("name=7", "name", "7"),
    ("data.train={hub: a/b, revision: 0123}", "data.train.revision", "0123"),
    ("data.train.path=[a, 1]", "data.train.paths", ("a", "1")),
    ("permute.delimiter=|", "permute.delimiter", "|"),
    ("permute.delimiter=!", "permute.delimiter", "!"),
    ("permute.delimiter=?", "permute.delimiter", "?"),
    ("data.train.path=-", "data.train.path", "-"),
    ("permute.delimiter=#", "permute.delimiter", "#"),
    ("permute.delimiter=' '", "permute.delimiter", " "),
    ("permute.orders={reversed: 2}", "permute.orders", {"reversed": 2.0}),
    ("output=", "output", "runs/a"),
]


@pytest.mark.parametrize(("override", "key", "value"), ACCEPTED)
def test_an_override_is_read_as_meant(override, key, value, base):
    found = read_config(base, [override])
    for part in key.split("."):
        found = getattr(found, part)
    assert (found, type(found)) == (value, type(value))


QUOTES = "must be a number, not text; write it without quotes, such as 2e-5 or 16"
REFUSED = [
    ("train.learning_rate=fast", f'train.learning_rate: {QUOTES} (given: "fast")'),
    ("train.learning_rate='2e-5'", f'train.learning_rate: {QUOTES} (given: "2e-5")'),
    ("train.learning_rate=.inf", f'train.learning_rate: {QUOTES} (given: ".inf")'),
    ("train.learning_rate=1e400", "train.learning_rate: must be a finite number (given: Infinity)"),
    ("train.learning_rate=0", "train.learning_rate: must be greater than 0 (given: 0)"),
    ("train.epochs=true", "train.epochs: must be a number, not true or false; write it without quotes, such as"),
    ("train.epochs=2.5", "train.epochs: must be a whole number (given: 2.5)"),
    ("train.epochs.x=2", "train.epochs: must be a whole number"),
    ("seed=010", f'seed: {QUOTES} (given: "010")'),
    ("seed=1_000", f'seed: {QUOTES} (given: "1_000")'),
    ("train.gradient_checkpointing=maybe", 'train.gradient_checkpointing: must be true or false (given: "maybe")'),
    ("name=1e3", "name: must be text, not a number; put it in quotes (given: 1000.0)"),
    ("name=true", "name: must be text (given: true)"),
    ("name=''", 'name: must not be empty (given: "")'),
    ("trian.epochs=1", "trian: unknown key. Did you mean train?"),
    ("train.epoch=1", "train.epoch: unknown key. Did you mean epochs?"),
    ("train.strategy=1", "train.strategy: unknown key. "),
    ("data.train.fields.txt=a", "data.train.fields.txt: unknown key. Did you mean text?"),
    ("data.epochs=1", "data.epochs: unknown key. Did you mean train.epochs?"),
    ("foo=1", "foo: unknown key. Known here: augment, data, evaluate, model, name, output, "),
    ("data.train=x.jsonl", 'data.train: must be a section; write train: {path: x.jsonl} (given: "x.jsonl")'),
    ("data.train.path={a: 1}", "data.train.path: must be a text or a list of texts, none of them empty"),
    ("data.train.path=[]", "data.train.path: must be a text or a list of texts, none of them empty (given: [])"),
    ("data.train.path=true", "data.train.path: must be a text or a list of texts, none of them empty (given: true)"),
    ("data.train.split=test", "data.train: split: only for a Hub dataset; give hub instead of path, or remove it"),
    ("data.train.hub=a/b", "data.train: give either path (a file, a glob, a folder, or -) or hub (a dataset id)"),
    ("train=3", "train: must be a section with keys such as objective, loss_on, epochs, max_steps; fill it, or remov"),
    ("train=", "train: must be a section with keys such as objective"),
    ("permute.orders={revresed: 1}", 'permute.orders: "revresed" is not one of original, reversed, shuffled, rotated'),
    ("permute.orders={Reverse: 1}", "Did you mean reversed?"),
    ("permute.orders={original: fast}", f"permute.orders.original: {QUOTES}"),
    ("permute.orders=original", 'permute.orders: must be a mapping, such as {key: value} (given: "original")'),
    ("permute.orders={original: 0}", "permute.orders: the weights need a finite sum above 0"),
    (
        "permute.curriculum=[{epoch: 1, orders: {original: 0}}]",
        "permute.curriculum.0.orders: the weights need a finite",
    ),
    ("permute.curriculum=[{epoch: 0, orders: {original: 1}}]", "permute.curriculum.0.epoch: "),
    (
        "permute.curriculum=[{epoch: 2, orders: {original: 1}}, {epoch: 2, orders: {reversed: 1}}]",
        "permute: curriculum: epochs [2, 2] must rise from phase to phase",
    ),
    (
        "permute.curriculum=[{epoch: 900, orders: {original: 1}}]",
        "permute.curriculum: epoch 900 is never reached: train.epochs is ",
    ),
    ("evaluate.metrics=[startwith]", '"startwith" is not one of exact, startswith, contains, first_words_1, '),
    ("evaluate.metrics=[firstwords_3]", "hits_10. Did you mean first_words_3?"),
    ("evaluate.headline=logprob", 'evaluate.headline: "logprob" is not one of exact, '),
    ("evaluate.metrics=exact", 'evaluate.metrics: must be a list, such as [a, b] (given: "exact")'),
    ("evaluate.metrics=[]", "evaluate: metrics: give at least one"),
    (
        "segment.segmenter=spacey",
        'segment.segmenter: "spacey" is not one of spacy, word, sentence, ',
    ),
    ("augment=[x]", "augment.0: must be a section with keys such as masked_context, repeat, identity_bridge, "),
    ("augment=[{masked_contex: {}}]", "augment.0.masked_contex: unknown key. Did you mean masked_context?"),
    ("augment=[{masked_context: {hihg: 0.5}}]", "augment.0.masked_context.hihg: unknown key. Did you mean high?"),
    ("augment=[{}]", "augment.0: each entry has one key out of masked_context, repeat, identity_bridge, "),
    ("augment=[{reverse_statements: {}}]", "give one of templates, template_column and assistant"),
    ("permute.fim_sentinels=[a, b, a]", "permute: fim_sentinels: must be three different visible signs"),
    ("model.lora={r: 1, 2: 3}", "model.lora: a key must be text (given: 2)"),
]


@pytest.mark.parametrize(("override", "line"), REFUSED)
def test_a_wrong_value_gives_one_clear_line(override, line, base):
    with pytest.raises(ConfigError) as caught:
        read_config(base, [override])
    first, *problems = str(caught.value).splitlines()
    assert first == f"{base}:"
    assert len(problems) == 1
    assert line in problems[0]


def test_every_problem_is_listed(base):
    with pytest.raises(ConfigError) as caught:
        read_config(base, ["model.base=", "train.epoch=2", "seed=x"])
    assert len(str(caught.value).splitlines()) == 4


@pytest.mark.parametrize("override", ["foo", "=3", "a..b=3", "name.x=3", "extends=base.yaml", "name=[", "name=a: b: c"])
def test_a_malformed_override_is_shown(override, base):
    with pytest.raises(ConfigError, match=r"^--set "):
        read_config(base, [override])


def test_an_override_leaves_the_values_it_lies_over():
    values = {"train": {"epochs": 1}}
    assert apply_override(values, "train.max_steps=3") == {"train": {"epochs": 1, "max_steps": 3}}
    assert values == {"train": {"epochs": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"must be a mapping of sections"),
        ("- a", r"must be a mapping of sections"),
        ("name: a\nseed: 1\nname: b", r"x\.yaml:3:1: key 'name' is given twice; keep one$"),
        ("train: {epochs: 1, epochs: 2}", r"x\.yaml:1:20: key 'epochs' is given twice"),
        ("name: a: b", r"x\.yaml:1:8: mapping values are not allowed here; put text with signs of YAML in quotes"),
        ("name: [", r"x\.yaml:1:8: "),
        ("? [a, b]\n: 3", r"x\.yaml:1:3: a key must be text, not a list or mapping"),
        ("seed: !!python/object:x 3", r"x\.yaml:1:7: could not determine a constructor"),
        ("a: &a {b: 1}\n<<: *a", r"x\.yaml:2:1: << is not read; use extends, or write the keys out"),
        ("a: &a [*a]", r"x\.yaml:1:8: \*a stands inside &a, so the value would hold itself; write it out$"),
        ("model: &a {base: m, lora: {x: [*a]}}", r"x\.yaml:1:32: \*a stands inside &a"),
        ("seed: !!int x", r"not YAML"),
        ("seed: " + "9" * 5000, r"not YAML \(Exceeds the limit"),
        ("name: " + "[" * 5000, r"x\.yaml"),
        ("name: \x07", r"unacceptable character"),
        ("extends: other.cfg", r"other\.cfg, which .*x\.yaml extends: does not exist; give the path of a YAML file"),
        ("extends: bse.yaml", r"bse\.yaml, which .*x\.yaml extends: does not exist; did you mean .*base\.yaml\?"),
        ("extends: 3", r"extends must be a file or a list of files \(given: 3\)"),
        ("extends: [base.yaml, null]", r"extends must be a file or a list of files"),
        ("extends: [loop.yaml]", r"x\.yaml: extends itself: .*x\.yaml -> .*loop\.yaml -> .*x\.yaml; remove one"),
    ],
)
def test_a_broken_file_is_named_with_its_place(text, message, base):
    (base.parent / "loop.yaml").write_text("extends: x.yaml")
    (base.parent / "x.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(base.parent / "x.yaml")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "latin.yaml").write_bytes("name: café".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"is not UTF-8 at byte 9; save it as UTF-8"):
        read_yaml(tmp_path / "latin.yaml")
    with pytest.raises(ConfigError, match=r"did you mean .*latin\.yaml\?"):
        read_yaml(tmp_path / "latn.yaml")
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        read_yaml(tmp_path)


def test_a_method_lies_over_an_experiment(base):
    method = base.parent / "methods" / "spt.yaml"
    method.parent.mkdir()
    method.write_text("\ufeffpermute: {orders: {reversed: 1}, order_tag: x}\ntrain: {epochs: 5}\n", encoding="utf-8")
    both = base.parent / "both.yaml"
    both.write_text("extends: [base.yaml, methods/spt.yaml]\nname: both\npermute: {orders: {rotated: 1}}\n")
    config = read_config(both)
    assert (config.name, config.output, config.train.epochs) == ("both", "runs/both", 5)
    # A key's value replaces the one below as a whole; its neighbours in the section stay.
    assert (config.permute.orders, config.permute.order_tag) == ({"rotated": 1.0}, "x")


AMBIGUOUS = st.from_regex(r"[-+]?[0-9_.eExo:]{1,6}|[a-zA-Z~<|>#&*!%@]{1,4}", fullmatch=True)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = SCALARS | AMBIGUOUS | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(st.text("ab1.", min_size=1), st.recursive(LEAVES, st.lists, max_leaves=4)))
def test_what_is_dumped_is_read_back(value):
    assert parse_yaml(dump_yaml(value), "dumped") == value


@given(delimiter=AMBIGUOUS, rate=st.floats(1e-12, 1e12), seed=st.integers(0, 2**63 - 1), rank=SCALARS | AMBIGUOUS)
def test_a_written_experiment_reads_as_equal(delimiter, rate, seed, rank, tmp_path_factory):
    config = Config.model_validate(
        {
            "name": delimiter,
            "seed": seed,
            "data": {"train": {"path": ["a", "b"], "fields": {"text": delimiter}}},
            "model": {"base": "m", "lora": {"r": rank}},
            "permute": {"delimiter": delimiter, "orders": {"original": rate}},
            "train": {"learning_rate": rate},
        }
    )
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    write_config(config, path)
    assert read_config(path) == config
