"""Expressions at random mean in Tacit what they mean in a real PostgreSQL, wherever they stand."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.differential.given import is_known
from tests.differential.places import Evaluators, evaluators, run
from tests.support.postgres import PostgresServer

N_FAST: Final = 500
N_SLOW: Final = 10_000
REFUSED_MAX: Final = 0.4  # more, and the generator has no teeth


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Evaluators]:
    with evaluators(tmp_path_factory.mktemp("both"), postgres_server) as found:
        yield found


def _assert_agrees(both: Evaluators, seed: int, n_expressions: int) -> None:
    found = run(both, seed, n_expressions)
    new = [one for one in found.differences if not is_known(one)]
    assert not new, "\n".join(new)
    assert found.refused <= REFUSED_MAX * found.tried


def test_expressions_mean_what_they_mean_in_postgresql(both: Evaluators) -> None:
    _assert_agrees(both, 35, N_FAST)


@pytest.mark.slow
def test_ten_thousand_expressions_mean_what_they_mean_in_postgresql(both: Evaluators) -> None:
    _assert_agrees(both, 36, N_SLOW)
