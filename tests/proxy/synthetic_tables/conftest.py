"""Fixtures for tests of synthetic tables: an engine that keeps them, without one and with one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.engine.engine import Engine
from tests.support.synthetic import ANN, MAKE, TWO_COLUMNS, asked, synthetic_engine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path) as engine:
        yield engine


@pytest.fixture
def made(engine: Engine) -> Engine:
    """An engine with the synthetic table `s`, which ann made of people."""
    asked(engine, f"{MAKE} WITH (epsilon => 1, rows => 500, seed => 7, {TWO_COLUMNS})", ANN)
    return engine
