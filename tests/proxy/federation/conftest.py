"""Two hospitals and what their coordinator may ask of one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hospitals import Hospital, hospitals


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Hospital]]:
    with hospitals(tmp_path, north=700, south=500) as found:
        yield found


@pytest.fixture
def north(tmp_path: Path) -> Iterator[Hospital]:
    with hospitals(tmp_path, north=700) as (found,):
        yield found
