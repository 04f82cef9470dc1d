"""A writer gives one line for each request, from a model in this process as from a server, and asks nothing twice."""

from misbehaving import Script, says, serving

from spt.assistant.prompt import read_prompt
from spt.assistant.write import Writer, WritingPrompt
from spt.config import Assistant

PROMPT = """
instruction: Ask.
examples: [{request: "Ann sings.", reply: "Who sings?"}]
"""


def test_a_model_in_this_process_writes_lines_and_keeps_them(model_folder, tmp_path):
    (tmp_path / "ask.yaml").write_text(PROMPT)
    cutting = {"mode": "score", "words_per_unit": 2.0}  # of a section that both read
    settings = Assistant(model=str(model_folder), cache=str(tmp_path), max_new_tokens=12, **cutting)
    first, second = (Writer(settings, str(tmp_path / "ask.yaml")) for _ in range(2))
    replies = first.write(["Bob reads.", "Cleo swims.", "Bob reads."])
    assert first.backend.requests == 2
    assert replies[0] == replies[2]
    assert all("\n" not in (reply.text or "") for reply in replies)
    assert second.write(["Cleo swims."]) == replies[1:2]
    assert second.backend.requests == 0


def test_a_server_is_shown_the_examples_as_turns_and_one_line_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    script = Script(**{"Bob_reads.": [says('"Who reads?"\nIt is Bob.')]})
    with serving(script) as url:
        settings = Assistant(backend="openai", model="tiny", base_url=url, cache=str(tmp_path))
        (reply,) = Writer(settings, "questions").write(["Bob reads."])
    assert reply.text == "Who reads?"
    roles = [message["role"] for message in script.requests[0]["messages"]]
    assert roles == ["system", *["user", "assistant"] * len(read_prompt("questions", WritingPrompt).examples), "user"]
