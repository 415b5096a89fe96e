"""What costs nothing: what reveals nothing, and whatever was answered before."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.noise.lattice_noise import SystemNoise
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.cases import Case, cases, parameters, request, spent
from tests.sql.comparing import rows_of
from tests.support.fakes import KnownTable

ANSWERED = cases("answered")
N_MOVED_MAX = 2
FREE = [case for case in ANSWERED if case.is_free]


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("noisy"), source, SystemNoise()) as engine:
        yield engine


@parameters(FREE)
def test_what_should_be_free_reads_nothing_and_costs_nothing(case: Case, tmp_path: Path) -> None:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path, source, SystemNoise()) as engine:
        engine.answer(request(case))
        assert spent(engine) == 0
    assert source.scopes_read == []


@parameters(ANSWERED)
def test_asked_again_it_is_free_and_says_the_same(case: Case, noisy: Engine) -> None:
    """What is bought around a subquery that is asked first may move its answer, once or twice."""
    first, again, cost = _asked_twice(noisy, case)
    for _ in range(N_MOVED_MAX if case.sql.count("SELECT") > 1 else 0):
        if cost or not _is_alike(first, again, case):
            first, again, cost = _asked_twice(noisy, case)
    assert cost == 0
    assert _is_alike(first, again, case)


def _is_alike(first: pa.Table, again: pa.Table, case: Case) -> bool:
    is_compared = case.comparison != "none"
    return not is_compared or rows_of(again, case.ignored) == rows_of(first, case.ignored)


def _asked_twice(engine: Engine, case: Case) -> tuple[pa.Table, pa.Table, Fraction]:
    """Both answers, and the cost of the second one."""
    first = engine.answer(request(case)).data
    before = spent(engine)
    return first, engine.answer(request(case)).data, spent(engine) - before
