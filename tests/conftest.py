"""Shared fixtures. Tensor axes are checked in every test, and no test asks the Hub."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# How long a busy machine takes to draw an example says nothing of the code.
settings.register_profile("spt", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("spt")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TQDM_DISABLE", "1")
install_import_hook(["spt.batch", "spt.loss", "spt.score.generate", "spt.score.likelihood"], "beartype.beartype")

from fakes import TOKENIZERS  # noqa: E402  # after the environment is set

from spt.progress import configure  # noqa: E402  # after the environment is set


@pytest.fixture(autouse=True)
def _messages_are_on() -> None:
    configure(enabled=True)


@pytest.fixture(scope="session", params=sorted(TOKENIZERS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    """A fast tokenizer of each kind."""
    return TOKENIZERS[request.param]()
