"""A server of streams, on a ledger whose day a test turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.streaming import Streaming, streaming


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ledger"


@pytest.fixture
def server(path: Path) -> Iterator[Streaming]:
    with streaming(path) as found:
        yield found
