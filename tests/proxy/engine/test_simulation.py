"""Laws of formulas that are remembered: when they are given again, and when they must not be."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from planner.cache import BoundedCache
from planner.workload import QuantileFormula
from proxy.api.requests import LOCAL, Caller, ColumnReceipt, QueryRequest
from proxy.engine.answers import simulation
from proxy.engine.answers.simulation import SimulatedLaw, Simulation
from proxy.engine.engine import Engine
from proxy.engine.usage import ToldAgain
from tests.support.private_history import DP, EVE, world
from tests.support.worlds import people_engine, random_rows

AVERAGE = f"{DP}(half_width => 20) AVG(age) FROM people"
MEDIAN = f"{DP}(half_width => 20) MEDIAN(age) FROM people"
CLOSER = f"{DP}(half_width => 4) COUNT(*), SUM(age) FROM people"


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The formulas that were simulated, in order, from an empty memory."""
    forget(monkeypatch)
    names: list[str] = []
    own = Simulation._simulated

    def counted(self: Simulation) -> SimulatedLaw:
        names.append(self.answer.name)
        return own(self)

    monkeypatch.setattr(Simulation, "_simulated", counted)
    return names


def forget(monkeypatch: pytest.MonkeyPatch, n_bytes_max: int = 2**26) -> None:
    empty = BoundedCache[object, SimulatedLaw](n_entries_max=1024, n_bytes_max=n_bytes_max)
    monkeypatch.setattr(simulation, "_REMEMBERED", empty)


def ask(engine: Engine, sql: str, caller: Caller = LOCAL) -> tuple[list[object], ColumnReceipt]:
    release = engine.answer(QueryRequest(sql=sql, caller=caller))
    assert release.receipt is not None
    return release.data.column(0).to_pylist(), release.receipt.columns[0]


@pytest.mark.parametrize("sql", [AVERAGE, MEDIAN])
def test_what_is_asked_again_is_not_simulated_again(
    tmp_path: Path, simulated: list[str], sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with people_engine(tmp_path, random_rows(500), budget=Fraction(10)) as engine:
        ask(engine, sql)
        values, free = ask(engine, sql)  # from here on, all of it is history
        simulated.clear()
        assert ask(engine, sql) == (values, free)
        assert not simulated
        forget(monkeypatch)
        monkeypatch.setattr(engine, "_told", ToldAgain())
        again, anew = ask(engine, sql)
        assert simulated
        assert again == values
        assert (anew.low, anew.high) == (free.low, free.high)


def test_after_a_purchase_it_is_simulated_from_what_is_known_now(
    tmp_path: Path, simulated: list[str]
) -> None:
    with people_engine(tmp_path, random_rows(500), budget=Fraction(100)) as engine:
        ask(engine, AVERAGE)
        _, before = ask(engine, AVERAGE)
        ask(engine, CLOSER)
        simulated.clear()
        _, after = ask(engine, AVERAGE)
        assert simulated
        assert after.high[0] - after.low[0] < before.high[0] - before.low[0]


@pytest.mark.parametrize("is_owner_first", [True, False])
def test_whoever_may_not_see_the_history_has_an_interval_of_their_own(
    tmp_path: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch, *, is_owner_first: bool
) -> None:
    with world(tmp_path / "w", is_busy=True) as engine:
        for caller in (LOCAL, EVE):
            ask(engine, AVERAGE, caller)
        alone = {}
        for caller in (LOCAL, EVE):
            forget(monkeypatch)
            _, alone[caller] = ask(engine, AVERAGE, caller)
        assert (alone[LOCAL].low, alone[LOCAL].high) != (alone[EVE].low, alone[EVE].high)
        forget(monkeypatch)
        callers = (LOCAL, EVE) if is_owner_first else (EVE, LOCAL)
        for caller in callers * 2:
            _, found = ask(engine, AVERAGE, caller)
            assert (found.low, found.high) == (alone[caller].low, alone[caller].high)
        simulated.clear()
        ask(engine, AVERAGE, EVE)
        ask(engine, AVERAGE, LOCAL)
        assert not simulated


def test_no_more_is_remembered_than_the_limit_of_bytes(
    tmp_path: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with people_engine(tmp_path, random_rows(500), budget=Fraction(10)) as engine:
        ask(engine, AVERAGE)
        forget(monkeypatch, n_bytes_max=1000)  # less than the draws of one row
        first = ask(engine, AVERAGE)
        simulated.clear()
        monkeypatch.setattr(engine, "_told", ToldAgain())
        assert ask(engine, AVERAGE) == first
        assert simulated
        assert not len(simulation._REMEMBERED)


def test_an_interval_is_cut_once_and_cannot_be_changed() -> None:
    law = SimulatedLaw(
        values=np.array([2.0]),
        draws=np.linspace(0.0, 4.0, 101)[None, :],
        low=0.0,
        high=10.0,
        is_undivided=np.zeros(1, dtype=np.bool_),
    )
    low, high = law.interval(0.5)
    np.testing.assert_allclose((low[0], high[0]), (1.0, 3.0), rtol=1e-4)
    assert law.interval(0.5)[0] is low
    assert law.interval(0.9)[0][0] < low[0]
    with pytest.raises(ValueError, match="read-only"):
        low[0] = 0.0


FORMULAS = (
    QuantileFormula(0.5, (1.0, 2.0, 3.0), (0, 1, 2), is_interpolated=False),
    QuantileFormula(0.5, (1.0, 2.0, 3.0), (0, 1, 2), is_interpolated=True),
    QuantileFormula(0.5, (1.0, 2.0, 3.0), (0, 1, 2), is_interpolated=True, upper=(2.0, 3.0, 4.0)),
)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_group_without_records_has_no_quantile(formula: QuantileFormula) -> None:
    """Three draws of the counts: none above 0, all at 0, and one record at the level 2."""
    counts = np.array([[-4.0, 0.0, 0.0], [-1.0, 0.0, 1.0], [-0.5, 0.0, 0.0]])
    ((below, empty, single),) = simulation.quantiles(formula, counts, 1)
    assert np.isnan(below)
    assert np.isnan(empty)
    assert 2.0 <= single <= 3.0
