"""Whatever is shown of a private table is within its own interval, whoever asks and however.

Groups are nearly empty and the noise is real, so that about half of the counts are below 0.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from planner.workload import Consistency, Fallback, RequestedTarget
from proxy.api.marginals import MadeMarginals, MarginalSet, MarginalsRequest
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.sql import world
from tests.support.fakes import KnownTable

ANN = Caller(Payer("ann"), Role.ANALYST, ("*",))
BY_AGE = (
    "SELECT age, {} AS x, DP_INTERVAL_LOW(x) AS low, DP_INTERVAL_HIGH(x) AS high FROM patients "
    "WHERE visits = 3 GROUP BY age"
)
ITEMS = (
    "COUNT(*)",
    "2 * COUNT(*) - 1",
    "COUNT(*) FILTER (WHERE insured)",
    "COUNT(DISTINCT patient_id)",
    "SUM(cost)",
    "SUM(-visits)",
    "SUM(stay) / 7",
)
FORMULAS = (
    "AVG(cost)",
    "VAR_SAMP(cost)",
    "STDDEV_POP(age)",
    "COUNT(*) FILTER (WHERE insured) * 1.0 / COUNT(*)",
    "GREATEST(COUNT(*), 0)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost)",
)
TARGETS = (
    RequestedTarget(),
    RequestedTarget(nonnegative_counts=True),
    RequestedTarget(integer_counts=True),
    RequestedTarget(nonnegative_counts=True, integer_counts=True),
)
NARROW = (
    RequestedTarget(half_width=0.1, integer_counts=True),
    RequestedTarget(half_width=0.05, epsilon_cap=Fraction(0), fallback=Fallback.HISTORY),
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions()[:100])
    folder = tmp_path_factory.mktemp("within")
    with world.patients_engine(folder, source, SystemNoise()) as engine:
        yield engine


def is_within(value: float | None, low: float | None, high: float | None) -> bool:
    """Whether a value is between two ends; so is one that is not there, or has no interval."""
    if value is None or low is None or high is None or math.isnan(low) or math.isnan(high):
        return True
    return low <= value <= high


def check(data: pa.Table, column: str = "x") -> list[float]:
    """The values, each within the ends beside it."""
    rows = data.to_pylist()
    assert all(is_within(row[column], row["low"], row["high"]) for row in rows), rows
    return [row[column] for row in rows if row[column] is not None]


def check_answer(engine: Engine, request: QueryRequest) -> list[float]:
    """The values of an answer, within the ends that SQL asked for and those of the receipt."""
    answer = engine.answer(request)
    assert answer.receipt is not None
    (column,) = answer.receipt.columns
    assert all(map(is_within, answer.data["x"].to_pylist(), column.low, column.high))
    return check(answer.data)


@pytest.mark.parametrize("item", [*ITEMS, *FORMULAS])
def test_an_answer_is_within_its_interval(engine: Engine, item: str) -> None:
    for target in TARGETS[: None if item == "COUNT(*)" else 1]:
        values = check_answer(engine, QueryRequest(sql=BY_AGE.format(item), target=target))
        if item in {"COUNT(*)", "SUM(cost)"} and not target.nonnegative_counts:
            assert min(values) < 0, "noise that is as often below 0 was not seen"
        if target.nonnegative_counts:
            assert min(values) == 0


def test_so_it_is_for_whole_numbers_and_what_could_not_be_paid(engine: Engine) -> None:
    for target in NARROW:
        sql = BY_AGE.format("COUNT(*)").replace("visits = 3", "visits = 4")
        check_answer(engine, QueryRequest(sql=sql, target=target))


@pytest.mark.parametrize("sql", ["SELECT * FROM ({}) AS t ORDER BY x", "WITH t AS ({}) TABLE t"])
def test_so_it_is_behind_other_sql(engine: Engine, sql: str) -> None:
    for item in ("COUNT(*)", "SUM(cost)"):
        inner = BY_AGE.format(item)
        assert min(check(engine.answer(QueryRequest(sql=sql.format(inner))).data)) < 0


def test_so_it_is_where_the_history_is_private(tmp_path: Path) -> None:
    source = KnownTable(world.SCHEMA, world.positions(10))
    with open_ledger(tmp_path / "patients.ledger") as ledger:
        gate = open_table(ledger, world.SCHEMA, world.BUDGET, source, SystemNoise())
        table = ServedTable(world.SCHEMA, world.DEFAULT, gate, sharing=Sharing.PRIVATE)
        engine = Engine({world.SCHEMA.table: table})
        for item in ("COUNT(*)", "SUM(cost)", "AVG(cost)"):
            check_answer(engine, QueryRequest(sql=BY_AGE.format(item), caller=ANN))


@pytest.mark.parametrize("consistency", list(Consistency))
def test_so_it_is_for_marginals(engine: Engine, consistency: Consistency) -> None:
    asked = MarginalsRequest(
        table="patients",
        sets=(MarginalSet(("age",)), MarginalSet(("age", "sex"))),
        consistency=consistency,
        budget=Fraction(1, 10),
    )
    *_, made = engine.marginals(asked, LOCAL)
    assert isinstance(made, MadeMarginals)
    check(made.data, "value")
