"""A server is asked like a model in this process: what it fails to answer is known, and asked again alone."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from misbehaving import Script, Served, asked, completion, drop, says, send, serving, status, writes
from pydantic import ValidationError

from spt.config import Evaluate, Server
from spt.errors import MissingError, ModelError, WorkError
from spt.records import Question
from spt.score.replies import candidate_nats
from spt.score.server import ServerAsked, server_key

QUESTIONS = [
    Question(who, who, "forward", f"{who} made", ("a boat",), distractors=("a clock",))
    for who in ("Ann", "Bob", "Cleo")
]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("spt.assistant.patience.FIRST", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def ask(tmp_path):
    """Return a function: script, what to do with the model → what comes of it."""

    def ask(script, do, **settings):
        with serving(script) as url:
            chat = settings.pop("chat_template", False)
            server = {"model": "tiny", "base_url": url, "timeout": 2.0, "max_retries": 1, **settings}
            return do(ServerAsked(Evaluate(server=Server(**server), max_new_tokens=8, chat_template=chat), tmp_path))

    return ask


def generate(prompts):
    return lambda model: model.generate(prompts, max_new_tokens=8)


def test_plain_prompts_go_to_completions_as_they_are_and_end_with_their_line(ask):
    script = Served()
    assert ask(script, generate(["Ann made", "Bob made"])) == ["a boat", "a boat"]
    (request,) = script.of("Ann made")
    assert (request["prompt"], request["max_tokens"], request["temperature"]) == ("Ann made", 8, 0)
    assert request["stop"] == ["\n"]


def test_under_a_chat_template_prompts_go_as_messages_and_a_thought_is_no_answer(ask):
    script = Script(Ann_made=[says("<think>A boat?\nA clock?</think>\n\nA boat.\nYes.")])
    assert ask(script, generate(["Ann made"]), chat_template=True) == ["A boat."]
    assert script.requests[0]["messages"] == [{"role": "user", "content": "Ann made"}]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (status(400), "refused"),
        (status(503), "server_error"),
        (drop, "connection"),
        (lambda handler: send(handler, 200, completion(None, finish="length")), "length"),
        (says(None, finish="content_filter"), "content_filter"),
    ],
)
def test_a_failure_is_counted_and_a_rerun_asks_for_it_alone(ask, behaviour, reason):
    def unanswered(model):
        return model.unanswered(QUESTIONS)

    script = Script(Bob_made=[behaviour], Ann_made=[says("a boat")], Cleo_made=[says("a boat")])
    assert ask(script, unanswered, chat_template=True) == {"Bob": reason}
    mended = Script(Bob_made=[says("a clock")])
    assert ask(mended, unanswered, chat_template=True) == {}
    assert {asked(request) for request in mended.requests} == {"Bob made"}
    silent = Script()
    answers = ask(silent, generate([question.prompt for question in QUESTIONS]), chat_template=True)
    assert answers == ["a boat", "a clock", "a boat"]
    assert silent.requests == []


def test_no_more_questions_are_read_than_are_asked_at_once(ask, monkeypatch):
    monkeypatch.setattr("spt.score.server._CHUNK", 8)
    script, ahead = Served(), []

    def groups():
        for number in range(20):
            ahead.append(3 * number - len(script.requests))
            yield f"{number} made", ("a boat", "a clock")

    assert ask(script, lambda model: model.failures(groups(), 20)) == {}
    assert len(script.requests) == 60
    assert max(ahead) < 8


def test_an_answer_without_content_is_the_empty_answer_and_not_its_reasoning(ask):
    script = Script(Ann_made=[says(None, reasoning_content="It is a boat")])
    assert ask(script, generate(["Ann made"]), chat_template=True) == [""]


@pytest.mark.parametrize("begin", ["", "<s>"])
def test_log_probabilities_are_those_of_the_candidates_tokens_alone(ask, begin):
    def both(model):
        assert model.has_log_probabilities
        return model.log_probabilities([("Ann made", ["a boat", "a large boat"]), ("Bob", ["sings"])])

    (short, long), (single,) = ask(Served(begin=begin), both)
    assert short == (-0.5 * (3 + 4), 2)
    assert long == (-0.5 * (3 + 4 + 5), 3)
    assert single == (-0.5 * 2, 1)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (Served(echo=False), "does not send those of the prompt back"),
        (Served(**{"The_sea_is_wide_and_deep.": [status(422)]}), r"refuses `echo` .*status 422"),
        (Served(**{"The_sea_is_wide_and_deep.": [status(501)]}), "fails when asked"),
    ],
)
def test_a_server_without_log_probabilities_says_why_and_still_answers(ask, script, words):
    def unanswered(model):
        assert not model.has_log_probabilities
        assert re.search(words, model.no_log_probabilities)
        return model.unanswered(QUESTIONS)

    assert ask(script, unanswered) == {}


def test_a_chat_gives_no_log_probabilities_and_is_not_asked_for_them(ask):
    script = Script()
    assert "chat completion" in ask(script, lambda model: model.no_log_probabilities, chat_template=True)
    assert script.requests == []


@pytest.mark.parametrize(
    ("behaviour", "error", "words"),
    [
        (status(401), MissingError, "environment variable MY_KEY"),
        (status(404), ModelError, "completions of plain text, or no model 'tiny'.*evaluate.server.base_url"),
        (status(429), WorkError, "no request was answered"),
    ],
)
def test_what_fails_for_every_question_stops_and_the_key_stays_secret(
    ask, monkeypatch, caplog, behaviour, error, words
):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    script = Served(**{"The_sea_is_wide_and_deep.": [behaviour], "Ann_made": [behaviour]})
    for do in (lambda model: model.unanswered(QUESTIONS), generate(["Ann made"])):
        with pytest.raises(error, match=words) as raised:
            ask(script, do, api_key_env="MY_KEY")
        assert "secret" not in str(raised.value) + caplog.text
    assert script.requests[0]["authorization"] == "Bearer sk-very-secret"


@pytest.mark.parametrize("value", [math.nan, -math.inf, "x", 10**400])
def test_a_log_probability_that_is_no_number_is_none_and_is_not_kept(ask, value):
    class Broken(Served):
        def _echo(self, handler):
            words = handler.sentence.split(" ")
            tokens = [words[0], *(f" {word}" for word in words[1:]), " more"]
            offsets = [sum(map(len, tokens[:number])) for number in range(len(tokens))]
            nats = [None, *[-1.0] * len(words)]
            nats[-2] = value if "Bob" in handler.sentence else -1.0
            logprobs = {"tokens": tokens, "token_logprobs": nats, "text_offset": offsets}
            send(handler, 200, {"choices": [{"text": "".join(tokens), "finish_reason": "stop", "logprobs": logprobs}]})

    def unanswered(model):
        return model.unanswered(QUESTIONS)

    assert ask(Broken(), unanswered) == {"Bob": "no_logprobs"}
    assert ask(Served(), unanswered) == {}


def test_half_a_surrogate_pair_in_a_reply_becomes_a_character_that_a_file_can_hold(ask):
    script = Served(Ann_made=[writes("a \ud800 boat \U0001f600")])
    assert ask(script, generate(["Ann made"])) == ["a \ufffd boat \U0001f600"]


def test_answers_do_not_depend_on_where_the_server_is_nor_on_patience():
    near, far = Server(model="m", base_url="http://a/v1"), Server(model="m", base_url="http://b/v1", concurrency=1)
    assert server_key(near) == server_key(far)
    assert server_key(near) != server_key(Server(model="m", revision="2"))


def test_a_place_with_a_password_is_refused():
    with pytest.raises(ValidationError, match="without a name or password"):
        Evaluate(server={"model": "m", "base_url": "http://me:pass@x/v1"})


@given(st.lists(st.text("ab ", min_size=1, max_size=4), min_size=2, max_size=8), st.data())
def test_every_token_that_ends_behind_the_prompt_counts_and_no_other(tokens, data):
    text = "".join(tokens)
    start = data.draw(st.integers(1, len(text) - 1))
    offsets = [sum(map(len, tokens[:number])) for number in range(len(tokens) + 1)]
    nats = [None, *(-float(number) for number in range(1, len(tokens) + 1))]
    choice = {"logprobs": {"tokens": [*tokens, "!"], "token_logprobs": nats, "text_offset": offsets}}
    wanted = [number for number in range(len(tokens)) if offsets[number] + len(tokens[number]) > start]
    if wanted[0] == 0:  # nothing predicts the first token
        with pytest.raises(TypeError):
            candidate_nats(choice, text, start)
    else:
        assert math.isclose(sum(candidate_nats(choice, text, start)), -float(sum(wanted)))
