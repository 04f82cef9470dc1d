"""Each rule does what its line says, for any text; floors are what a wrong answer or chance would reach."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spt.metrics import METRICS, Answer, measure, measure_floors
from spt.metrics.match import (
    STATED,
    bleu,
    contains,
    exact,
    first_words,
    rouge1_recall,
    startswith,
    states_fact,
    token_f1,
)
from spt.metrics.text import trim, words
from spt.records import IN_NATS, MATCH_RULES

texts = st.text(min_size=1).filter(trim)
WORDS = ("the", "of", "Ann", "Lee", "made", "a", "bell", "Bell,", "bells'", "田中", "no", "two")
phrases = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)
OF_TEXT = (
    "exact", "startswith", "contains", *(f"first_words_{n}" for n in range(1, 10)), "token_f1", "rouge1_recall",
    "states_fact", "bleu",
)  # fmt: skip


def answer(prediction: str, *targets: str, **rest) -> Answer:
    return Answer(prediction, targets, rest.pop("wordings", targets), **rest)


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


def test_words_are_the_same_in_every_manner_of_writing_and_exist_in_every_script() -> None:
    assert words("Ann's  well-known “Bell”, 1,000") == ("anns", "well", "known", "bell", "1", "000")
    assert words("ANN’S") == words("ann's")
    assert words("田中さんは医者です。") == tuple("田中さんは医者です")
    assert words("हिन्दी में") == ("हिन्दी", "में")
    assert words("E\N{COMBINING ACUTE ACCENT}mile") == ("émile",)
    assert words(" … ") == ()
    assert words("+1 ☂") == ("1",)
    assert words("☂!") == ("☂",)


@pytest.mark.parametrize(
    ("count", "prediction", "right"),
    [
        (2, "The beekeeper, who taught wasps", True),
        (2, "beekeeper who taught", False),
        (3, "the beekeeper", False),
        (9, "the beekeeper who taught bees. Later", True),  # the target has no more words
        (9, "the beekeeper who taught", False),
    ],
)
def test_first_words_compares_the_beginning_word_by_word(count: int, prediction: str, right: bool) -> None:
    assert first_words(count)(prediction, "the beekeeper who taught bees") is right


def test_token_f1_is_squads_and_rouge_its_recall() -> None:
    # Shared: maker, bell (once); 3 words of the prediction and 4 of the target without articles.
    assert token_f1("A maker: bell bell!", "the Maker of the bell Ding") == pytest.approx(
        2 * (2 / 3) * (2 / 4) / (7 / 6)
    )
    assert rouge1_recall("A maker: bell bell!", "the Maker of the bell Ding") == pytest.approx(2 / 6)
    assert token_f1("her maker", "the bell") == 0
    assert token_f1("the", "The") == 1
    assert rouge1_recall("医者", "医者です") == 0.5


@pytest.mark.parametrize(
    ("prediction", "right"),
    [
        ("she is the inventor of the rye bread clock, they say", True),
        ("an inventor: the rye bread clock", True),
        ("inventor rye clock", False),  # 3 of 4
        ("the rye bread clock of the inventor", False),  # the longest run in order is 3
        ("the", False),
        ("", False),
    ],
)
def test_a_fact_is_stated_by_its_content_words_in_order(prediction: str, right: bool) -> None:
    assert states_fact(prediction, "the inventor of the rye bread clock") is right


def test_the_threshold_of_a_stated_fact_is_met_at_four_fifths() -> None:
    wording = "one two three four five"
    assert states_fact("one two three, then five", wording)
    assert not states_fact("one two three", wording)
    assert f"{STATED}" in MATCH_RULES["states_fact"]


def test_a_fact_is_stated_by_another_questions_wording_and_nothing_else_is() -> None:
    found = answer("she baked a clock", "the rye bread clock", wordings=("the rye bread clock", "baked a clock"))
    assert {name for name, value in measure(found, OF_TEXT).items() if value == 1} == {"states_fact"}


def test_bleu_is_sacrebleus_over_words_not_characters() -> None:
    assert bleu("the cat sat on the mat", "The cat sat on the mat.") == pytest.approx(1)
    # 1-grams 5/6, 2-grams 3/5, 3-grams 1/4, 4-grams 0 of 3, smoothed to 1/(2*3).
    expected = (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** (1 / 4)
    assert bleu("the cat sat on a mat", "the cat lay on a mat") == pytest.approx(expected)
    assert bleu("tailor of Harrow", "sailor or harrows") == 0


@given(texts)
def test_every_metric_of_text_is_full_for_the_target_itself_in_either_normal_form(target: str) -> None:
    for form in ("NFC", "NFD"):
        found = measure(answer(unicodedata.normalize(form, target), target), OF_TEXT)
        assert all(value == pytest.approx(1) for value in found.values()), found


@given(phrases, phrases)
def test_every_metric_of_text_stays_between_0_and_1_and_rates_are_0_or_1(prediction: str, target: str) -> None:
    for name, value in measure(answer(prediction, target), OF_TEXT).items():
        assert 0 <= value <= 1
        assert name in ("token_f1", "rouge1_recall", "bleu") or value in (0, 1)


@given(st.text(), st.sampled_from(["", " ", "\n", '"."', "?!", "’ "]))
def test_an_empty_target_never_matches(prediction: str, target: str) -> None:
    found = measure(answer(prediction, target), OF_TEXT)
    found.pop("startswith")  # it keeps punctuation, as Berglund does
    assert not any(found.values())
    assert not startswith(prediction, target.strip('.?!"’'))


@given(st.text(), texts)
def test_an_exact_match_also_contains_its_target_and_states_the_fact(prediction: str, target: str) -> None:
    for tried in (prediction, f' "{target}". '):
        assert contains(tried, target) or not exact(tried, target)
        assert states_fact(tried, target) or not contains(tried, target)


@given(phrases, st.lists(phrases, min_size=1, max_size=3))
def test_of_several_targets_the_best_counts(prediction: str, targets: list[str]) -> None:
    together = measure(answer(prediction, *targets), OF_TEXT)
    apart = [measure(answer(prediction, target), OF_TEXT) for target in targets]
    assert together == {name: max(row[name] for row in apart) for name in OF_TEXT}


def test_log_probabilities_are_those_of_the_best_target_each_by_its_own_measure() -> None:
    found = measure(answer("", "a", "b", logprobs=((-4.0, 8), (-3.0, 2)), distractor_logprobs=(-3.5, -9)), METRICS)
    assert (found["logprob"], found["logprob_per_token"], found["choice"]) == (-3.0, -0.5, 1.0)


@pytest.mark.parametrize(("distractor", "right"), [(-3.1, 1.0), (-3.0, 0.0), (-2.0, 0.0)])
def test_a_choice_is_right_only_above_every_distractor(distractor: float, right: float) -> None:
    found = measure(answer("", "a", logprobs=((-3.0, 1),), distractor_logprobs=(-9.0, distractor)), ["choice"])
    assert found == {"choice": right}


def test_a_metric_that_does_not_apply_is_left_out_and_not_counted_as_wrong() -> None:
    assert measure(answer("x", "y"), METRICS).keys() == set(OF_TEXT)
    assert measure(answer("x", "y", logprobs=((-1.0, 1),)), ["choice", "mrr"]) == {}


def test_floors_are_other_facts_answers_for_text_and_chance_for_choices_and_ranks() -> None:
    found = answer(
        "the bell of Ann", "the lake", logprobs=((-1.0, 2),), distractor_logprobs=(-2.0, -3, -4), rank=1.0, rivals=9
    )
    floors = measure_floors(found, [("the bell",), ("a whale", "bell of ann"), ("a hedge",), ("oak",)], METRICS)
    assert floors["startswith"] == 1 / 4
    assert floors["contains"] == floors["states_fact"] == 2 / 4  # each other fact by its best target
    assert floors["rouge1_recall"] == 2 / 4
    assert floors["choice"] == 1 / 4
    assert floors["hits_1"] == pytest.approx(1 / 10)
    assert floors["mrr"] == pytest.approx(sum(1 / rank for rank in range(1, 11)) / 10)
    assert floors.keys() == METRICS.keys() - set(IN_NATS)
    assert measure_floors(answer("x", "y"), [], METRICS) == {}


def test_every_metric_has_a_match_rule_of_one_line_and_bounds_of_its_unit() -> None:
    assert list(MATCH_RULES) == list(METRICS)
    assert all(rule and "\n" not in rule for rule in MATCH_RULES.values())
    assert {name for name, metric in METRICS.items() if metric.bounds[0] < 0} == set(IN_NATS)


@settings(deadline=None)
@given(st.text())
def test_no_text_is_too_odd_to_be_measured(text: str) -> None:
    assert measure(answer(text, text, "Ann"), OF_TEXT).keys() == set(OF_TEXT)
