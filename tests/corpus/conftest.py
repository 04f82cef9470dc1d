from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spt.config import Source
from spt.corpus import read_records
from spt.errors import CorpusError
from spt.records import Record

Read = Callable[..., tuple[list[Record], list[CorpusError]]]


@pytest.fixture
def read() -> Read:
    """Reads a path under the policy `reject`; returns records and errors."""

    def read_all(path: Path | str | tuple[str, ...], limit: int | None = None, **fields: Any):
        errors: list[CorpusError] = []
        given = path if isinstance(path, tuple) else str(path)
        records = list(read_records(Source(path=given, fields=fields), reject=errors.append, limit=limit))
        return records, errors

    return read_all
