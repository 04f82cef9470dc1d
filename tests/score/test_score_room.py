"""Rows keep their keys and values whichever leave and join; weights laid out anew compute the same."""

import torch
from fakes import byte_level, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from spt.score import room
from spt.score.room import Room, fill_holes
from spt.score.running import can_run
from spt.score.weights import weights_laid_out

HEADS, SIZE = 2, 3


def states(rows, width, generator):
    return [torch.rand(rows, HEADS, width, SIZE, generator=generator) for _ in range(2)]


@given(data=st.data())
def test_a_row_keeps_what_was_written_of_it_whoever_leaves_and_joins(data):
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    layer, known = Room(), []  # a row: its keys and its values, without padding
    ahead, room._AHEAD = room._AHEAD, data.draw(st.integers(1, 3))
    try:
        layer.update(*(parts := states(3, 4, generator)))
        known = [[part[row] for part in parts] for row in range(3)]
        for _ in range(data.draw(st.integers(1, 8))):
            match data.draw(st.sampled_from(["write", "leave", "join"])):
                case "write":
                    layer.update(*(parts := states(len(known), 1, generator)))
                    known = [
                        [torch.cat([old, part[row]], dim=1) for old, part in zip(own, parts, strict=True)]
                        for row, own in enumerate(known)
                    ]
                case "leave":
                    kept = sorted(data.draw(st.sets(st.integers(0, len(known) - 1), min_size=1)))
                    order, holes, fillers = fill_holes(kept)
                    assert sorted(order) == kept
                    known = [known[row] for row in order]
                    padding = layer.keys.shape[2] - max(own[0].shape[1] for own in known)
                    layer.leave(len(kept), torch.tensor(holes), torch.tensor(fillers), padding)
                case "join":
                    other = Room()
                    parts = states(2, data.draw(st.integers(1, 9)), generator)
                    other.update(*parts)
                    layer.join(other)
                    known += [[part[row] for part in parts] for row in range(2)]
            for row, own in enumerate(known):
                for found, wanted in zip((layer.keys, layer.values), own, strict=True):
                    assert torch.equal(found[row][:, found.shape[2] - wanted.shape[1] :], wanted)
            assert layer.get_seq_length() == max(own[0].shape[1] for own in known)
            assert layer.keys.isfinite().all(), "what nobody wrote is masked, and must not be no number"
    finally:
        room._AHEAD = ahead


def test_a_step_copies_nothing_of_what_was_read():
    layer, generator = Room(), torch.Generator().manual_seed(0)
    layer.update(*states(2, 5, generator))
    before = layer.keys.data_ptr()
    for _ in range(20):
        layer.update(*states(2, 1, generator))
    assert layer.keys.data_ptr() == before


def test_weights_laid_out_for_a_kernel_give_the_same_bits_and_are_put_back():
    model = tiny_model("llama", byte_level(), hidden_size=64, intermediate_size=96).bfloat16()
    ids = torch.arange(12).view(3, 4)
    with torch.inference_mode():
        wanted = model(input_ids=ids).logits
        with weights_laid_out(model):
            changed = [module for module in model.modules() if "forward" in module.__dict__]
            found = model(input_ids=ids).logits
    assert len(changed) == 2 * 7 + 1
    assert torch.equal(found, wanted)
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_half_precision_does_not_keep_rows_from_ending_one_by_one():
    for seed in range(3):
        assert can_run(tiny_model("llama", byte_level(), seed=seed).bfloat16())
