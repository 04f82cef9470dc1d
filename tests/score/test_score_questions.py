"""A score holds the best target, its floors and its distractors; ranks share the questions and lose none."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fakes import byte_level, tiny_model

import spt.score.questions
from spt.config import Evaluate
from spt.metrics import Answer, measure
from spt.records import Question
from spt.score import LocalAsked, rates, score_questions, spread
from spt.score.likelihood import log_probabilities
from spt.score.stream import score_row
from spt.statistics import Floors

SETTINGS = Evaluate(batch_size=3, max_new_tokens=4)


def asked(model):
    return LocalAsked(model, byte_level(), SETTINGS)


def make_questions(count=7):
    return [
        Question(
            f"q{n}", f"f{n}", ("forward", "reversed")[n % 2], f"Ann Lee directed the{' the' * (n % 3)}",
            (f"Lake number {n}.", f"Sea {n}."), distractors=("Oslo", "Lyon") if n % 2 else (),
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama", byte_level())


def test_scores_stand_in_the_order_of_the_questions_with_the_best_target(model):
    questions = make_questions()
    scores = score_questions(asked(model), questions, SETTINGS)
    assert [score.question for score in scores] == questions
    for score in scores:
        pairs = [(score.question.prompt, text) for text in (*score.question.targets, *score.question.distractors)]
        nats = [log_probabilities(model, byte_level(), [pair], 1)[0] for pair in pairs]
        best = max(nats[: len(score.question.targets)])
        assert score.logprob == pytest.approx(best[0], rel=1e-4)
        assert score.target_tokens == best[1]
        assert score.distractor_logprobs == pytest.approx([value for value, _ in nats[2:]], rel=1e-4)
        targets, distractors = score.question.targets, score.distractor_logprobs
        answer = Answer(score.prediction, targets, targets, ((score.logprob, score.target_tokens),), distractors)
        assert score.metrics == measure(answer, SETTINGS.metrics)
        assert ("choice" in score.metrics) == bool(score.question.distractors)


def test_an_answer_given_twice_has_one_chance_to_be_right(model):
    once = make_questions()
    twice = [replace(one, targets=one.targets * 2, distractors=one.distractors + one.distractors[:1]) for one in once]
    settings = Evaluate(metrics=("exact", "choice", "logprob", "mrr", "hits_1"), max_new_tokens=1)
    first, second = (score_questions(asked(model), questions, settings) for questions in (once, twice))
    assert [(score.metrics, score.floors) for score in first] == [(score.metrics, score.floors) for score in second]
    assert any(score.floors["choice"] == 0.5 for score in second if "choice" in score.floors)


def test_some_of_a_set_are_ranked_over_the_targets_of_all_of_it(model):
    questions = make_questions(9)
    settings = Evaluate(metrics=("exact", "mrr"), max_new_tokens=1, floor_targets=0)
    whole = score_questions(asked(model), questions, settings)
    some = score_questions(asked(model), questions[:3], settings, among=questions)
    assert [score.metrics for score in some] == [score.metrics for score in whole[:3]]
    assert some != score_questions(asked(model), questions[:3], settings)


def test_a_floor_is_what_other_facts_answers_would_score(model, monkeypatch):
    questions = make_questions()
    monkeypatch.setattr(LocalAsked, "generate", lambda *a, **b: ["Lake number 2."] * len(questions))
    scores = score_questions(asked(model), questions, SETTINGS, seed=5)
    floors = Floors(questions, 5)
    for score in scores:
        others = floors[score.question]
        assert score.floors["exact"] == pytest.approx(
            sum("Lake number 2." in targets for targets in others) / len(others)
        )
    assert {score.question.id for score in scores if score.metrics["exact"]} == {"q2"}
    assert any(score.floors["exact"] > 0 for score in scores)


def test_the_floor_of_a_log_probability_is_that_of_other_facts_answers_after_the_same_prompt(model):
    questions = make_questions()
    settings = Evaluate(metrics=("exact", "logprob", "logprob_per_token"), max_new_tokens=1, floor_targets=2)
    scores = score_questions(asked(model), questions, settings, seed=5)
    drawn = Floors(questions, 5, 2)
    for score in scores:
        others = drawn[score.question]
        assert len(others) == 2
        nats = [
            [log_probabilities(model, byte_level(), [(score.question.prompt, text)], 1)[0] for text in targets]
            for targets in others
        ]
        best = [max(value for value, _ in own) for own in nats]
        a_token = [max(value / tokens for value, tokens in own) for own in nats]
        assert score.floors["logprob"] == pytest.approx(sum(best) / 2, rel=1e-4)
        assert score.floors["logprob_per_token"] == pytest.approx(sum(a_token) / 2, rel=1e-4)


def test_other_facts_answers_are_read_only_where_a_metric_in_nats_asks_for_them(model, monkeypatch):
    read = []
    whole = LocalAsked.log_probabilities

    def counted(self, groups):
        read.append(sum(len(texts) for _, texts in groups))
        return whole(self, groups)

    monkeypatch.setattr(LocalAsked, "log_probabilities", counted)
    for metrics, floor_count in ((("exact", "choice"), 32), (("exact", "logprob"), 0), (("exact", "logprob"), 32)):
        settings = Evaluate(metrics=metrics, max_new_tokens=1, floor_targets=floor_count)
        (score, *_) = score_questions(asked(model), make_questions(), settings)
        assert ("exact" in score.floors) == bool(floor_count)
    own = 7 * 2 + 3 * 2  # targets, and distractors
    # Of the four forward facts each is scored against three others, of the three reversed ones against two.
    assert read == [own, own, own + 2 * (4 * 3 + 3 * 2)]


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("count", [1, 7])
def test_ranks_share_the_questions_and_get_what_one_process_gets(model, world, count, monkeypatch):
    questions = make_questions(count)
    single = score_questions(asked(model), questions, SETTINGS)
    shares = []

    def gather(scores):
        shares.append(scores)
        return [*single, *scores]  # rows that come twice count once

    monkeypatch.setattr(spt.score.questions, "gather_object", gather)
    for rank in range(world):
        accelerator = SimpleNamespace(process_index=rank, num_processes=world)
        found = score_questions(asked(model), questions, SETTINGS, accelerator=accelerator)
        assert [score.question.id for score in found] == [question.id for question in questions]
    together = {score.question.id: score for share in shares for score in share}
    assert sum(map(len, shares)) == len(together) == count
    for score in single:
        assert together[score.question.id].prediction == score.prediction
        assert together[score.question.id].logprob == pytest.approx(score.logprob, rel=1e-4)


def test_rates_are_plain_shares_of_each_direction(model):
    scores = score_questions(asked(model), make_questions(4), Evaluate(metrics=("exact",), max_new_tokens=1))
    right = [
        SimpleNamespace(question=score.question, metrics={"exact": float(n < 1)}) for n, score in enumerate(scores)
    ]
    assert rates(right) == {"forward": {"exact": 0.5}, "reversed": {"exact": 0.0}}
    assert rates(right[:1]) == {"forward": {"exact": 1.0}}


def test_a_spread_takes_questions_from_the_whole_set():
    questions = make_questions(10)
    assert [question.id for question in spread(questions, 4)] == ["q0", "q2", "q5", "q7"]
    assert spread(questions, 10) == questions


def test_a_score_is_one_flat_row(model):
    one, two = score_questions(asked(model), make_questions(2), SETTINGS)
    row = score_row(two)
    assert row.keys() == {
        "id", "fact_id", "direction", "prompt", "targets", "distractors", "prediction", "logprob", "target_tokens",
        "distractor_logprobs", *SETTINGS.metrics,
    } | {f"{name}_floor" for name in two.floors}  # fmt: skip
    assert (row["id"], row["direction"], row["distractors"]) == ("q1", "reversed", ("Oslo", "Lyon"))
    assert "distractors" not in score_row(one)


def test_a_rank_is_over_all_targets_of_the_set_in_the_questions_direction(model):
    questions = make_questions(5)
    settings = Evaluate(metrics=("mrr", "hits_1"), max_new_tokens=1, headline="mrr")
    for score in score_questions(asked(model), questions, settings):
        own = score.question
        rivals = [text for q in questions if q.direction == own.direction and q is not own for text in q.targets]
        nats = [log_probabilities(model, byte_level(), [(own.prompt, text)], 1)[0][0] for text in rivals]
        rank = 1 + sum(value > score.logprob for value in nats)
        assert score.metrics == {"mrr": 1 / rank, "hits_1": float(rank == 1)}
        assert score.floors["hits_1"] == pytest.approx(2 / (2 + len(rivals)))
