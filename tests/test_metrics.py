import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spt.metrics import METRICS, contains, exact, measure, startswith, trim
from spt.records import MATCH_RULES

words = st.text(min_size=1).filter(trim)


@pytest.mark.parametrize(
    ("prediction", "target", "right"),
    [
        (' "Ada Lovelace."\n', "Ada Lovelace", True),
        ("Ada Lovelace", "“Ada Lovelace”!", True),
        ("ada lovelace", "Ada Lovelace", False),
        ("Ada Lovelace, who", "Ada Lovelace", False),
        ("St. John", "St John", False),
        ("Ada  Lovelace", "Ada Lovelace", False),
        ("\N{NO-BREAK SPACE}田中さん。", "田中さん", True),
    ],
)
def test_exact_forgives_only_what_stands_at_the_ends(prediction: str, target: str, right: bool) -> None:
    assert exact(prediction, target) is right


@pytest.mark.parametrize(
    ("prediction", "target", "right"),
    [
        ("  ADA LOVELACE, the first", "Ada Lovelace", True),
        ("the Ada Lovelace", "Ada Lovelace", False),
        ("STRASSE 5", "Straße", True),
        ("Ada", "Ada Lovelace", False),
    ],
)
def test_startswith_ignores_case_and_leading_white_space(prediction: str, target: str, right: bool) -> None:
    assert startswith(prediction, target) is right


def test_contains_finds_the_trimmed_target_inside() -> None:
    assert contains("she is the COMPOSER of it", " the composer. ")
    assert not contains("she is the", "the composer")


@given(words)
def test_every_metric_accepts_the_target_itself_in_either_normal_form(target: str) -> None:
    for form in ("NFC", "NFD"):
        assert all(measure(unicodedata.normalize(form, target), [target], METRICS).values())


@given(st.text(), st.sampled_from(["", " ", "\n", '"."', "?!", "’ "]))
def test_an_empty_target_never_matches(prediction: str, target: str) -> None:
    assert not exact(prediction, target)
    assert not contains(prediction, target)
    assert not startswith(prediction, target.strip('.?!"’'))


@given(st.text(), words)
def test_an_exact_match_also_contains_its_target(prediction: str, target: str) -> None:
    for tried in (prediction, f' "{target}". '):
        assert contains(tried, target) or not exact(tried, target)


def test_measure_takes_the_best_target_and_only_the_named_metrics() -> None:
    assert measure("Bob.", ["Ann", "Bob"], ["exact", "contains"]) == {"exact": 1.0, "contains": 1.0}
    assert measure("Bob", [], ["exact"]) == {"exact": 0.0}


def test_every_metric_has_a_match_rule_of_one_line() -> None:
    assert MATCH_RULES.keys() == METRICS.keys()
    assert all(rule and "\n" not in rule for rule in MATCH_RULES.values())
