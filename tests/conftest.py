"""Shared fixtures; tensor axes are checked in every test."""

from typing import Any

import pytest
from jaxtyping import install_import_hook

install_import_hook(["spt.batch", "spt.loss", "spt.score.generate", "spt.score.likelihood"], "beartype.beartype")

from fakes import TOKENIZERS  # noqa: E402


@pytest.fixture(scope="session", params=sorted(TOKENIZERS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    """A fast tokenizer of each kind."""
    return TOKENIZERS[request.param]()
