"""Advice to clip: named where the history knows that few rows are high, and true to the price."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import CategoryAxis, MeasureAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.engine.explain import Cap
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable

EVE = Caller(Payer("eve"), Role.ANALYST, ("orders",))
N_ROWS = 20_000
SCHEMA = Schema(
    table="orders",
    axes=(
        CategoryAxis(name="country", values=("no", "se")),
        MeasureAxis(name="revenue", low=0, high=100_000, step=1),
    ),
    n_records_max=N_ROWS,
)
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
SUM = f"{DP}(half_width => 200000) SUM({{}}) AS s FROM orders"
LOOK = f"{DP}(half_width => 40) COUNT(*) AS n FROM orders WHERE revenue > {{}}"


@contextmanager
def orders(folder: Path, sharing: Sharing = Sharing.SHARED) -> Iterator[Engine]:
    """Most revenue is far below what is declared."""
    draw = np.random.default_rng(7)
    revenue = np.minimum(np.exp(draw.normal(4, 1, N_ROWS)), 100_000).astype(np.int64)
    source = KnownTable(SCHEMA, np.column_stack([draw.integers(0, 2, N_ROWS), revenue]))
    default = AccuracyTarget(half_width=100.0, confidence=0.95)
    with open_ledger(folder / "orders.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(50), source, SystemNoise())
        table = ServedTable(SCHEMA, default, gate, Strategy.AUTO, sharing=sharing)
        yield Engine({"orders": table})


def explained(engine: Engine, sql: str, caller: Caller = LOCAL) -> tuple[str | None, float]:
    """The advice on an aggregate of the statement, and its price."""
    found = engine.explain(QueryRequest(sql=sql, caller=caller))
    advice = {one for one in found.data["advice"].to_pylist() if one is not None}
    assert len(advice) <= 1
    return advice.pop() if advice else None, float(found.epsilon)


def look(engine: Engine, *above: int) -> None:
    """Ask how many rows there are, and how many above some values."""
    for value in (-1, *above):
        engine.answer(QueryRequest(sql=LOOK.format(value)))


def test_a_history_that_knows_nothing_of_a_column_gives_no_advice(tmp_path: Path) -> None:
    with orders(tmp_path) as engine:
        assert explained(engine, SUM.format("revenue"))[0] is None


@pytest.mark.parametrize("group", ["", " GROUP BY country"])
def test_what_is_advised_costs_what_it_says(tmp_path: Path, group: str) -> None:
    with orders(tmp_path) as engine:
        look(engine, 781, 1562, 12_500)
        advice, epsilon = explained(engine, SUM.format("revenue") + group)
        assert advice is not None
        assert advice.startswith("LEAST(revenue, 781) costs about ")
        assert f"instead of {epsilon:.3g}. " in advice
        _, clipped = explained(engine, SUM.format("LEAST(revenue, 781)") + group)
        assert f"about {clipped:.3g} " in advice
        assert clipped < epsilon / 50


def test_of_an_average_too(tmp_path: Path) -> None:
    with orders(tmp_path) as engine:
        look(engine, 1562)
        mean = f"{DP}(half_width => 20) AVG({{}}) AS a FROM orders"
        advice, _ = explained(engine, mean.format("revenue"))
        assert advice is not None
        assert advice.startswith("LEAST(revenue, 1562) costs about ")


def test_a_cap_that_many_rows_are_above_is_not_advised(tmp_path: Path) -> None:
    with orders(tmp_path) as engine:
        look(engine, 390)
        assert explained(engine, SUM.format("revenue"))[0] is None


@pytest.mark.parametrize("asked", ["LEAST(revenue, 500)", "1", "revenue * revenue / 100000"])
def test_a_sum_that_a_cap_makes_little_cheaper(tmp_path: Path, asked: str) -> None:
    with orders(tmp_path) as engine:
        look(engine, 781)
        advice, _ = explained(engine, SUM.format(asked))
        assert (advice is None) == (asked != "revenue * revenue / 100000")


def test_a_private_history_advises_nobody_who_may_not_see_it(tmp_path: Path) -> None:
    with orders(tmp_path, Sharing.PRIVATE) as engine:
        look(engine, 1562)
        assert explained(engine, SUM.format("revenue"))[0] is not None
        assert explained(engine, SUM.format("revenue"), EVE)[0] is None


def test_a_cap_is_written_with_all_its_digits() -> None:
    axis = MeasureAxis(name="revenue", low=0, high=3_125_000, step=5)
    assert str(Cap(axis, 312_501, 1_562_505.0)) == "LEAST(revenue, 1562505)"
    assert str(Cap(axis, 0, 0.25)) == "LEAST(revenue, 0.25)"
