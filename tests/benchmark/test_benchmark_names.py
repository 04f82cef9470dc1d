"""Benchmarks are asked for by name, and a wrong request is told what there is."""

from pathlib import Path

import pytest

from spt.benchmark import BENCHMARKS, make_benchmark
from spt.benchmark.person_description import CONTROLS, TESTS, TRAIN
from spt.errors import InputError


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("fictional-poeple", {}, "Did you mean fictional-people?"),
        ("fictional-people", {"source": Path()}, "leave out --from"),
        ("fictional-people", {"people": [1, 1, 1]}, r"people must be three whole numbers \(--people N,N,N\), not \[1"),
        ("instructions", {}, "give --from FOLDER"),
        ("instructions", {"source": Path(), "seed": 1}, "instructions has no option seed; it is made whole"),
    ],
)
def test_a_wrong_request_is_refused_with_a_remedy(tmp_path, name, options, said):
    with pytest.raises(InputError, match=said):
        make_benchmark(name, tmp_path, **options)


def test_every_benchmark_is_listed_with_source_and_licence():
    assert set(BENCHMARKS) == {
        "bios",
        "fictional-people",
        "non-reciprocal",
        "symbolic",
        "wiki-reversal",
        "person-description",
        "celebrity-relations",
        "instructions",
    }
    assert all(benchmark.description and benchmark.source and benchmark.licence for benchmark in BENCHMARKS.values())
    assert not BENCHMARKS["fictional-people"].fetchable
    assert set(TRAIN) | set(TESTS) | set(CONTROLS) == set(BENCHMARKS["person-description"].files)
