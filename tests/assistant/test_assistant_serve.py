"""A real OpenAI-compatible server: `transformers serve` on loopback, with a tiny random model."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from experiment import free_port

from spt.assistant import Item, UnitAssistant
from spt.assistant.local import LocalModel
from spt.assistant.prompt import read_prompt
from spt.config import Assistant, Evaluate
from spt.errors import InputError, WorkError
from spt.model import load_trained
from spt.score.asked import LocalAsked
from spt.score.server import ServerAsked

pytestmark = pytest.mark.full

TEMPLATE = "{% for m in messages %}{{ m['role'] }}:\n{{ m['content'] }}\n{% endfor %}assistant:\n"
TEXTS = ["Ann Lee directed The Sea.", "Zoë naïvely met Uriah Hawthorne in Oslo.", "The botanist painted."]
ITEMS = [Item(text, tuple(match.start() for match in re.finditer(" ", text))) for text in TEXTS]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return (model folder, base URL) of a running server, whose model ends its replies like any other."""
    from fakes import byte_level, tiny_model

    folder = tmp_path_factory.mktemp("served") / "tiny"
    tokenizer = byte_level()
    model = tiny_model("llama", tokenizer, seed=1, max_position_embeddings=1024)
    # So many ends that greedy decoding meets one soon.
    model.generation_config.eos_token_id = list(range(0, 400, 8))
    model.generation_config.pad_token_id = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    port = free_port()
    command = [Path(sys.executable).with_name("transformers"), "serve", folder, "--host", "127.0.0.1", "--port", port]
    with (folder.parent / "log").open("w") as log:
        process = subprocess.Popen(
            [*map(str, command), "--device", "cpu"], stdout=log, stderr=log,
            env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield folder, f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def _wait(url, process):
    for _ in range(600):
        assert process.poll() is None, "the server did not start"
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the server did not become healthy")


@pytest.fixture
def settings(served, prompt_file, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder, url = served
    values = {"model": str(folder), "prompt": str(prompt_file), "cache": str(tmp_path), "max_new_tokens": 40}
    return {**values, "backend": "openai", "base_url": url, "mode": "generate"}


def test_the_server_says_what_the_same_model_says_in_this_process(settings):
    server = UnitAssistant(Assistant(**settings)).backend
    local = LocalModel(
        Assistant(**{name: settings[name] for name in ("model", "prompt", "mode")}), read_prompt(settings["prompt"])
    )
    replies = [{n: reply for found in backend.ask(ITEMS) for n, reply in found.items()} for backend in (server, local)]
    for number in range(len(ITEMS)):
        there, here = replies[0][number].text, replies[1][number].text
        # The server shows the end token, here an ordinary one, as the last character.
        assert there[:-1] == here
    assert any(reply.text for reply in replies[1].values())


def test_a_rerun_sends_nothing_and_answers_the_same(settings):
    first, second = (UnitAssistant(Assistant(**settings)) for _ in range(2))
    answers = first.cut(ITEMS)
    assert all(isinstance(answer, str) for answer in answers)  # a random model copies nothing
    assert first.counts()["requests"] >= 3
    assert second.cut(ITEMS) == answers
    assert second.counts() == {"requests": 0, "cache_hits": 3}


def test_constrained_needs_a_server_that_takes_a_grammar(settings):
    with pytest.raises(InputError, match=r"refuses a grammar \(status 422\)"):
        UnitAssistant(Assistant(**{**settings, "mode": "constrained"})).cut(ITEMS)


def test_no_server_at_all_stops_the_run(settings):
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(WorkError, match=rf"{nobody}: no request was answered \(connection\)"):
        UnitAssistant(Assistant(**{**settings, "base_url": nobody, "max_retries": 0})).cut(ITEMS)


@pytest.mark.parametrize("chat_template", [False, True])
def test_an_evaluation_gets_the_answers_of_the_same_model_in_this_process(settings, tmp_path, chat_template):
    server = {name: settings[name] for name in ("model", "base_url")}
    asked = ServerAsked(Evaluate(server=server, chat_template=chat_template), tmp_path)
    model, tokenizer = load_trained(settings["model"], dtype="float32")
    local = LocalAsked(model, tokenizer, Evaluate(chat_template=chat_template))
    there, here = (one.generate(TEXTS, max_new_tokens=12) for one in (asked, local))
    assert any(here)
    for left, right in zip(there, here, strict=True):
        # The server shows the end token, here an ordinary one, as the last character.
        assert left.startswith(right)
        assert len(left) <= len(right) + 4
    assert not asked.has_log_probabilities
    assert ("chat completion" if chat_template else "echo") in asked.no_log_probabilities
