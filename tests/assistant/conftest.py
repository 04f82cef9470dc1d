"""A tiny random assistant on disk, its prompt, and a cache of its own for each test."""

import pytest
from fakes import byte_level, tiny_model

from spt.assistant import UnitAssistant
from spt.config import Assistant

PROMPT = """
instruction: Cut the sentence.
listing: Sentences in units.
request: Write some.
separator: "|"
examples: ["Ann Lee| directed| The Sea."]
"""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("assistant") / "tiny"
    tokenizer = byte_level()
    tiny_model("llama", tokenizer, seed=1, max_position_embeddings=1024).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def prompt_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("prompts") / "short.yaml"
    path.write_text(PROMPT)
    return path


@pytest.fixture
def make(model_folder, prompt_file, tmp_path):
    """Return a maker of assistants that share the test's cache."""

    def make(mode, **settings):
        values = {"model": str(model_folder), "prompt": str(prompt_file), "cache": str(tmp_path / "cache"), **settings}
        return UnitAssistant(Assistant(mode=mode, **values))

    return make
