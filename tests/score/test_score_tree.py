"""A tree holds every sequence once, and a model reads it as it would read each sequence alone."""

import pytest
import torch
from fakes import byte_level, metaspace, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from spt.encode import IGNORED
from spt.model.adapter import add_lora
from spt.records import Example
from spt.score import forest
from spt.score.batches import Budget
from spt.score.likelihood import continuation_examples, group_log_probabilities, log_probabilities
from spt.score.tree import Tree, grow

GROUPS = [
    ("Ann Lee directed", ["The Sea.", "The Sea of", "The Lake.", "Oslo", "The Sea."]),
    ("abc", ["NO", "NOP", "qQ"]),
    ("Ann ", ["Lee", "Bee", " Lee"]),  # the border lies within a token
    ("", ["Ann Lee", "Ann", "The Sea"]),
    ("Daphne Barrington, who painted the", ["harbour"]),
]
SEQUENCES = st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=2, max_size=7), st.integers(1, 6)), min_size=1)


def examples(sequences):
    return [
        Example(str(n), "original", tuple(ids), tuple(t if p >= first else IGNORED for p, t in enumerate(ids)))
        for n, (ids, first) in enumerate(sequences)
    ]


def path(tree: Tree, node: int) -> list[int]:
    return [] if node < 0 else [*path(tree, tree.parents[node]), tree.tokens[node]]


@given(sequences=SEQUENCES, width=st.integers(1, 12))
def test_every_sequence_stands_in_one_tree_and_no_token_twice(sequences, width):
    rows = examples(sequences)
    trees = list(grow(enumerate(rows), width))
    assert sorted(number for tree in trees for number in tree.members) == list(range(len(rows)))
    for tree in trees:
        assert len({tuple(path(tree, node)) for node in range(len(tree))}) == len(tree)
        assert len(tree) <= max(width, *(len(rows[number].input_ids) - 1 for number in tree.members))
        for place, number in enumerate(tree.members):
            predicted = [(path(tree, node), token) for member, node, token in tree.edges if member == place]
            ids, labels = list(rows[number].input_ids), rows[number].labels
            assert predicted == [(ids[:p], ids[p]) for p in range(1, len(ids)) if labels[p] != IGNORED]
        seen = tree.visible(len(tree) + 1)
        for node in range(len(tree)):
            visible = [tree.tokens[other] for other in seen[node].nonzero()[0]]
            assert visible == path(tree, node)
            assert tree.positions[node] == len(visible) - 1
        assert seen[-1].sum() == 1, "padding sees itself alone"


KINDS = [("llama", "sdpa"), ("gpt2", "eager"), ("gpt2", "sdpa"), ("qwen3", "sdpa"), ("gemma2", "eager")]
SIZES = {"num_key_value_heads": 2, "head_dim": 8}


@pytest.mark.parametrize(("kind", "attention"), KINDS)
def test_candidates_that_share_their_prompt_get_what_each_gets_alone(kind, attention, tokenizer):
    model = tiny_model(kind, tokenizer, attention=attention, **({} if kind == "gpt2" else SIZES))
    alone = [
        [log_probabilities(model, tokenizer, [(prompt, text)], 1)[0] for text in texts] for prompt, texts in GROUPS
    ]
    assert forest.widest_tree(model) > 0
    for batch_size, tokens in ((1, 8192), (2, 8192), (64, 40), (64, 8192)):
        found = group_log_probabilities(model, tokenizer, GROUPS, batch_size, tokens)
        for one, other in zip(found, alone, strict=True):
            assert [count for _, count in one] == [count for _, count in other]
            assert [nats for nats, _ in one] == pytest.approx([nats for nats, _ in other], rel=1e-5, abs=1e-4)


def test_an_adapter_is_read_as_well():
    tokenizer = byte_level()
    model = add_lora(tiny_model("llama", tokenizer), {"r": 2, "init_lora_weights": False}, None, 0).eval()
    found = group_log_probabilities(model, tokenizer, GROUPS[:2], 8)
    wanted = [
        log_probabilities(model, tokenizer, [(prompt, text) for text in texts], 8) for prompt, texts in GROUPS[:2]
    ]
    with model.disable_adapter():
        other = group_log_probabilities(model, tokenizer, GROUPS[:2], 8)
    assert [n for group in found for n, _ in group] == pytest.approx(
        [n for group in wanted for n, _ in group], rel=1e-5
    )
    assert found != other


def test_a_model_with_dropout_in_training_reads_trees_and_nothing_is_drawn():
    model = add_lora(tiny_model("llama", byte_level()), {"lora_dropout": 0.5, "init_lora_weights": False}, None, 0)
    state = torch.get_rng_state()
    assert forest.widest_tree(model.train()) > 0
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("kind", "values"), [("bloom", {}), ("mistral", {**SIZES, "sliding_window": 8})])
def test_what_cannot_read_a_tree_reads_each_candidate_with_its_prompt(kind, values, capsys):
    tokenizer = byte_level()
    model = tiny_model(kind, tokenizer, attention="eager", **values)
    found = group_log_probabilities(model, tokenizer, GROUPS, 8)
    alone = [log_probabilities(model, tokenizer, [(prompt, text) for text in texts], 1) for prompt, texts in GROUPS]
    assert [n for group in found for n, _ in group] == pytest.approx([n for group in alone for n, _ in group], rel=1e-4)
    assert ("cannot share a prompt" in capsys.readouterr().err) == (kind == "bloom")


def test_a_prompt_is_computed_once_for_all_its_candidates(monkeypatch):
    tokenizer = metaspace()
    model = tiny_model("llama", tokenizer)
    forest.widest_tree(model)
    log_probabilities(model, tokenizer, [("a", "b")], 1)
    computed = []
    model.model.register_forward_pre_hook(
        lambda _, __, named: computed.append(named["input_ids"].numel()), with_kwargs=True
    )
    prompt, texts = "Daphne Barrington, who painted the harbour, lives in", ["Lyon", "Oslo", "Rome", "Paris"]
    group_log_probabilities(model, tokenizer, [(prompt, texts)], 8)
    rows = continuation_examples(tokenizer, [(prompt, text) for text in texts])
    read = {row.input_ids[:end] for row in rows for end in range(1, len(row.input_ids))}
    assert computed == [len(read)]
    assert len(read) < sum(len(row.input_ids) for row in rows) / 2


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(
    "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")])  # fmt: skip
def test_a_batch_that_does_not_fit_is_halved_until_it_does(error, capsys):
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer)
    wanted = group_log_probabilities(model, tokenizer, GROUPS, 8)
    sizes = []

    def limited(module, arguments, named):
        sizes.append(len(named["input_ids"]))
        if sizes[-1] > 1:
            raise error

    model.model.register_forward_pre_hook(limited, with_kwargs=True)
    found = group_log_probabilities(model, tokenizer, GROUPS, 8)
    assert [n for group in found for n, _ in group] == pytest.approx(
        [n for group in wanted for n, _ in group], rel=1e-4
    )
    assert max(sizes) > 1
    assert capsys.readouterr().err.count("out of memory") == 1
    model.model.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(type(error)):
        log_probabilities(model, tokenizer, [("a", "b")], 1)


@given(lengths=st.lists(st.integers(1, 50), max_size=30), rows=st.integers(1, 8), tokens=st.integers(1, 200))
def test_a_budget_holds_every_row_once_and_no_batch_too_many(lengths, rows, tokens):
    batches = list(Budget(rows, tokens).batches(lengths))
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= tokens
