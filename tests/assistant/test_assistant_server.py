"""A server may misbehave in every way there is: each item gets its cuts, or its reason, and nothing is sent in vain."""

import re

import pytest
from misbehaving import Script, completion, copy, drop, hang, says, send, serving, short, slow, status, truncated
from pydantic import ValidationError

from spt.assistant import Item
from spt.config import Assistant
from spt.errors import InputError, MissingError, ModelError, WorkError


def item(text):
    return Item(text, tuple(match.start() for match in re.finditer(" ", text)))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("spt.assistant.patience.FIRST", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def ask(make):
    """Return a function: script, sentences → answers."""

    def ask(script, *sentences, mode="generate", **settings):
        with serving(script) as url:
            served = {"backend": "openai", "model": "tiny", "base_url": url, "timeout": 0.5, "max_retries": 2}
            assistant = make(mode, **{**served, **settings})
            return assistant.cut([item(sentence) for sentence in sentences])

    return ask


@pytest.mark.parametrize(
    "trouble",
    [status(429), status(408), status(409), status(500), status(503), drop, truncated, short, hang,
     lambda handler: send(handler, 200, {"choices": []}),
     lambda handler: send(handler, 200, b"<html>a proxy</html>", content_type="text/html")],
    ids=["429", "408", "409", "500", "503", "dropped", "truncated", "short", "hanging", "no choice", "html"],
)  # fmt: skip
def test_what_may_pass_is_tried_again(ask, trouble):
    script = Script(Ann_sings_well=[trouble, copy])
    assert ask(script, "Ann sings well") == [(3,)]
    assert len(script.of("Ann sings well")) == 2


@pytest.mark.parametrize(("header", "seconds"), [("0.4", 0.4), ("Mon, 30 Nov 1998 12:00:00 GMT", 0.0)])
def test_retry_after_is_honoured(ask, header, seconds):
    script = Script(Ann_sings_well=[status(429, retry_after=header), copy])
    assert ask(script, "Ann sings well") == [(3,)]
    first, second = (request["at"] for request in script.requests)
    assert seconds <= second - first < seconds + 0.4


def test_tries_end_and_only_that_item_fails_and_is_asked_again_next_time(ask):
    script = Script(Bob_never_answers=[status(500)], Cleo_hangs_here=[hang])
    asked = ("Ann sings well", "Bob never answers", "Cleo hangs here")
    assert ask(script, *asked) == [(3,), "server_error", "timeout"]
    assert [len(script.of(sentence)) for sentence in asked] == [1, 3, 3]
    mended = Script()
    assert ask(mended, *asked) == [(3,), (3,), (4,)]
    assert sorted(request["messages"][-1]["content"] for request in mended.requests) == list(asked[1:])


def test_a_refused_item_is_not_tried_again_and_stops_no_other(ask):
    script = Script(Bad_words_here=[status(400)], Odd_words_here=[status(422)])
    assert ask(script, "Ann sings well", "Bad words here", "Odd words here") == [(3,), "refused", "refused"]
    assert len(script.requests) == 3


def test_a_reply_cut_off_is_asked_for_with_more_tokens_and_then_given_up(ask):
    script = Script(Ann_sings_well=[says("Ann |", finish="length"), copy], Bob_runs_on=[says("x", finish="length")])
    assert ask(script, "Ann sings well", "Bob runs on", max_new_tokens=10) == [(3,), "length"]
    assert [request["max_tokens"] for request in script.of("Ann sings well")] == [10, 20]
    assert [request["max_tokens"] for request in script.of("Bob runs on")] == [10, 20, 40]


@pytest.mark.parametrize(
    ("behaviour", "answer"),
    [
        (says(None), "empty"),
        (says(""), "empty"),
        (says(None, reasoning_content="I should cut it.\nAnn | sings well"), (3,)),
        (says("", reasoning="Ann sings | well"), (9,)),
        (says("<think>Ann? | Bob?</think>\n\nAnn | sings well"), (3,)),
        (says([{"type": "text", "text": "Ann | sings well"}]), (3,)),
        (says("Ann | sings well\n\nNote: two units."), "extra_text"),
        (says("Ann Lee | directed | The Sea."), "parroted"),
    ],
)
def test_content_is_found_where_it_stands_and_read_with_care(ask, behaviour, answer):
    assert ask(Script(Ann_sings_well=[behaviour]), "Ann sings well") == [answer]


def test_requests_run_side_by_side_within_the_bound_and_answers_keep_their_order(ask):
    sentences = [f"Ann sings song {number}" for number in range(12)]
    script = Script(**{sentence.replace(" ", "_"): [slow] for sentence in sentences})
    assert ask(script, *sentences, concurrency=4) == [(3,)] * 12
    assert 1 < script.most_running <= 4


@pytest.mark.parametrize(
    ("behaviour", "error", "words"),
    [
        (status(401), MissingError, "environment variable MY_KEY"),
        (status(403), MissingError, "environment variable MY_KEY"),
        (status(404), ModelError, "no model 'tiny'.*/v1"),
        (status(402), WorkError, "answers with status 402"),
        (status(500), WorkError, "no request was answered"),
        (drop, WorkError, "run again"),
    ],
)
def test_what_would_fail_for_every_item_stops_the_run_and_the_key_stays_secret(
    ask, monkeypatch, caplog, behaviour, error, words
):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    script = Script(Ann_sings_well=[behaviour])
    with pytest.raises(error, match=words) as raised:
        ask(script, "Ann sings well", api_key_env="MY_KEY", max_retries=1)
    assert script.requests[0]["authorization"] == "Bearer sk-very-secret"
    assert "secret" not in str(raised.value) + caplog.text
    chain = raised.value.__cause__
    assert chain is None or "secret" not in str(chain)


def test_the_key_is_in_no_key(make, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    assert "secret" not in str(make("generate", backend="openai", base_url="http://localhost:1/v1").key())


def test_openai_itself_needs_a_key(make):
    with pytest.raises(MissingError, match="OPENAI_API_KEY"):
        make("generate", backend="openai", model="gpt").cut([item("Ann sings well")])


def test_a_server_that_holds_to_grammars_is_probed_once_and_asked_with_them(ask):
    def obey(handler):
        grammar = handler.server.script.requests[-1]["grammar"]
        literals = re.findall(r'"((?:[^"\\]|\\.)*)"', grammar)
        send(handler, 200, completion("".join(literals)))

    script = Script(held_to_a_grammar=[obey], Ann_sings_well=[obey], Bob_reads_much=[obey])
    assert ask(script, "Ann sings well", "Bob reads much", mode="constrained", concurrency=1) == [(3, 9), (3, 9)]
    assert [request["grammar"] for request in script.requests] == [
        'root ::= "held to a grammar"',
        'root ::= "Ann" ("|")? " sings" ("|")? " well"',
        'root ::= "Bob" ("|")? " reads" ("|")? " much"',
    ]


@pytest.mark.parametrize("behaviour", [copy, status(400), status(422), status(501)])
def test_a_server_that_takes_no_grammar_is_refused_for_constrained(ask, behaviour):
    script = Script(held_to_a_grammar=[behaviour])
    with pytest.raises(
        (InputError, WorkError), match=r"mode constrained needs; use mode generate|takes no grammar, use mode generate"
    ) as raised:
        ask(script, "Ann sings well", mode="constrained")
    assert isinstance(raised.value, InputError) or "server_error" in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "openai", "mode": "score"}, "mode score reads the log-probability.*use mode constrained"),
        ({"base_url": "http://x/v1"}, "base_url: only for backend openai"),
        ({"backend": "openai", "dtype": "bfloat16"}, "dtype: only for backend transformers"),
        ({"backend": "openai", "base_url": "http://me:pass@x/v1"}, "without a name or password"),
        ({"mode": "generate", "threshold": -1}, "threshold: only for mode score"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, words):
    with pytest.raises(ValidationError, match=words):
        Assistant(model="x", **settings)
