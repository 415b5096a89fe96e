"""Units with several rows are counted at their holders, and each pays at its own."""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.compare import compared
from accountant.auditor.verify import verify
from accountant.gate import Funds, open_table
from accountant.gate.opening import as_seen
from accountant.ledger import open_ledger
from accountant.ledger.history import UnitCounts
from accountant.noise import SystemNoise
from cube.axis import CategoryAxis, DateAxis
from cube.holders import Holders
from cube.measurement import Weight
from cube.query import QueryBlock, counting
from cube.refusals import InvalidRequest, NotCovered
from cube.statistic import PlannedUnitCount, UnitCount
from proxy.api import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.tables import ServedTable
from tests.support.audited import rechained
from tests.support.counted_units import Orders, Unit, schema
from tests.support.federated import Federation, HoldersHere
from tests.support.square_tables import BUDGET, DEFAULT

ROWS_MAX = 3
WEIGHT = Weight(1_000_000_001)
HOLDERS: Mapping[str, dict[int, Unit]] = {
    "north": {100 + one: ((one % 3, 0), (one % 3, 1), (0, 0)) for one in range(40)},
    "south": {200 + one: ((one % 2, 0),) for one in range(25)},
    "west": {300 + one: ((2, 1), (1, 1)) for one in range(10)},
}
COUNT = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width=6) COUNT(DISTINCT person) AS n FROM orders"
)
BY_CITY = COUNT.replace("COUNT(", "city, COUNT(") + " GROUP BY city ORDER BY city"
BY_HOLDER = COUNT.replace("COUNT(", "holder, COUNT(") + " GROUP BY holder ORDER BY holder"
ROWS = COUNT.replace("DISTINCT person", "*") + " WHERE city = 'a'"
ROUNDING = 20 * ROWS_MAX * Fraction(1, 2**40)  # of some counts, each in whole units for each row
EVERYBODY = sum(map(len, HOLDERS.values()))
IN_CITY = [
    sum(
        any(city == place for city, _ in unit)
        for units in HOLDERS.values()
        for unit in units.values()
    )
    for place in range(3)
]


@contextmanager
def federation_of(
    folder: Path,
    holders: Mapping[str, dict[int, Unit]] = HOLDERS,
    *,
    overlap: bool = False,
    budgets: Mapping[str, Fraction] | None = None,
) -> Iterator[Federation]:
    folder.mkdir(exist_ok=True)
    own = schema(ROWS_MAX)
    axis = CategoryAxis(name="holder", values=tuple(holders))
    whole = replace(own, axes=(*own.axes, axis), holders="holder")
    whole = whole.with_overlap() if overlap else whole
    with ExitStack() as stack:
        ledgers, gates = [], []
        for name, units in holders.items():
            ledger = stack.enter_context(open_ledger(folder / f"{name}.ledger"))
            funds = BUDGET if budgets is None else budgets[name]
            gates.append(open_table(ledger, own, funds, Orders(units), SystemNoise()))
            ledgers.append(ledger)
        here = HoldersHere(gates, list(holders))
        ledger = stack.enter_context(open_ledger(folder / "coordinator.ledger"))
        gate = open_table(ledger, whole, Funds(BUDGET), here, SystemNoise())
        table = ServedTable(whole, DEFAULT, gate, holders_public=True)
        yield Federation(Engine({"orders": table}), ledger, here, ledgers, table)


def ask(federation: Federation, sql: str) -> QueryResult:
    return federation.engine.answer(QueryRequest(sql=sql, caller=LOCAL))


def numbers(result: QueryResult) -> list[float]:
    return [float(row["n"]) for row in result.data.to_pylist()]


def cost(result: QueryResult) -> Fraction:
    assert result.receipt is not None
    return result.receipt.epsilon_spent


def assert_all_agree(federation: Federation, *, overlap: bool = False) -> None:
    """Each ledger passes its audit, and a person loses what the holders that have it charged."""
    held = dict(zip(HOLDERS, federation.ledgers, strict=True))
    for ledger in (federation.ledger, *held.values()):
        verdict = verify(ledger.entries())
        assert verdict.problem is None
        assert all(one.exact and one.recomputed <= one.spent for one in verdict.tables)
    entries = {name: one.entries() for name, one in held.items()}
    assert not compared(federation.ledger.entries(), entries).problems
    spent = federation.spent()
    least = sum(spent) if overlap else max(spent)
    assert least <= federation.table.gate.budget().spent <= least + ROUNDING


def test_units_are_counted_at_their_holders_and_pay_there(tmp_path: Path) -> None:
    """95 % half-widths of 6, missed by three times as much once in 10**3 runs of one noise."""
    with federation_of(tmp_path) as federation:
        found = ask(federation, COUNT)
        assert abs(numbers(found)[0] - EVERYBODY) < 24
        assert len(set(federation.spent())) == 1
        assert_all_agree(federation)
        again = ask(federation, COUNT)
        assert numbers(again) == numbers(found)
        assert cost(again) == 0
        by_city = ask(federation, BY_CITY)
        assert np.abs(np.array(numbers(by_city)) - IN_CITY).max() < 60
        ask(federation, ROWS)
        assert_all_agree(federation)


BOUNDED = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width=6, rows_per_unit={}) COUNT(*) AS n "
    "FROM orders"
)


@pytest.mark.parametrize("overlap", [False, True])
def test_bounded_rows_are_counted_at_their_holders(tmp_path: Path, overlap: bool) -> None:
    """As often as their bound says, and raised; a bound is found from all holders' units."""
    truth = sum(min(2, len(unit)) for units in HOLDERS.values() for unit in units.values())
    with federation_of(tmp_path, overlap=overlap) as federation:
        found = ask(federation, BOUNDED.format(2))
        assert abs(numbers(found)[0] - truth) < 40
        assert cost(ask(federation, BOUNDED.format(2))) == 0
        wide = federation.spent()[0]
        ask(federation, BOUNDED.format(2).replace("=6", "=3"))
        assert wide * Fraction(9, 5) < federation.spent()[0] < wide * Fraction(11, 5)
        by_city = BOUNDED.format(1).replace("COUNT", "city, COUNT") + " GROUP BY city"
        assert len(numbers(ask(federation, by_city))) == 3
        ask(federation, BOUNDED.format("'auto'") + " WHERE city = 'a'")
        assert_all_agree(federation, overlap=overlap)


def test_half_as_wide_is_raised_at_every_holder(tmp_path: Path) -> None:
    with federation_of(tmp_path) as federation:
        ask(federation, COUNT)
        wide = federation.spent()[0]
        ask(federation, COUNT.replace("=6", "=3"))
        charged = federation.ledgers[0].history("orders").payments[-1].charge
        assert [one.raised_from for one in charged.unit_counts] == [0]
        assert wide * Fraction(9, 5) < federation.spent()[0] < wide * Fraction(11, 5)
        assert_all_agree(federation)


def test_groups_of_holders_have_the_noise_of_one(tmp_path: Path) -> None:
    with federation_of(tmp_path) as federation:
        found = ask(federation, BY_HOLDER)
        sizes = [len(units) for units in HOLDERS.values()]
        assert np.abs(np.array(numbers(found)) - sizes).max() < 40
        assert float(federation.spent()[0]) == pytest.approx(np.log(20) / 6, rel=1e-3)
        narrow = cost(ask(federation, COUNT))
        assert 0 < narrow < federation.spent()[0]
        assert_all_agree(federation)


def test_a_person_at_several_holders_is_counted_at_one_of_them_only(tmp_path: Path) -> None:
    with federation_of(tmp_path, overlap=True) as federation:
        with pytest.raises(InvalidRequest, match="several holders"):
            ask(federation, COUNT)
        assert federation.table.gate.budget().spent == 0
        ask(federation, BY_HOLDER)
        ask(federation, ROWS)
        assert_all_agree(federation, overlap=True)


def test_a_holder_without_budget_refuses_before_anything_is_charged(tmp_path: Path) -> None:
    budgets = {"north": Fraction(5), "south": Fraction(1, 100), "west": Fraction(5)}
    with federation_of(tmp_path, budgets=budgets) as federation:
        with pytest.raises(NotCovered, match="south"):
            ask(federation, COUNT)
        assert federation.spent() == [0, 0, 0]
        assert federation.table.gate.budget().spent == 0


@pytest.mark.parametrize("sql", [COUNT, f"{COUNT} WHERE city = 'a'"])
def test_a_holder_with_less_left_counts_with_more_noise(tmp_path: Path, sql: str) -> None:
    """At three equal weights, each would pay more than south has: the others pay more instead."""
    with federation_of(tmp_path / "all") as federation:
        ask(federation, sql)
        equal = federation.spent()[0]
    left = equal * Fraction(9, 10)
    budgets = {"north": Fraction(5), "south": left, "west": Fraction(5)}
    with federation_of(tmp_path / "less", budgets=budgets) as federation:
        found = ask(federation, sql)
        assert found.receipt is not None
        (column,) = found.receipt.columns
        assert (column.high[0] - column.low[0]) / 2 <= 6 + 1e-9
        north, south, west = federation.spent()
        assert left * Fraction(99, 100) < south <= left
        assert equal < north == west < 2 * equal
        assert_all_agree(federation)
        assert cost(ask(federation, sql)) == 0


def test_the_auditor_divides_by_no_more_than_the_ledger_says(tmp_path: Path) -> None:
    """Each forged ledger has its digests made anew, so that only the cost can convict it."""
    with federation_of(tmp_path) as federation:
        ask(federation, BY_CITY)
        opening, *others = federation.ledger.entries()
    assert verify(rechained([opening, *others])).problem is None
    forged = [
        ('"holders":"holder",', ""),  # any unit may be at every holder
        ('"rows_per_unit":3', '"rows_per_unit":1000'),  # and one may have more rows
    ]
    for old, new in forged:
        body = opening.body.replace(old, new)
        assert body != opening.body
        problem = verify(rechained([replace(opening, body=body), *others])).problem
        assert problem is not None
        assert "charge" in str(problem) or "cost" in str(problem)


def test_those_that_can_answer_count_their_units(tmp_path: Path) -> None:
    with federation_of(tmp_path) as federation:
        federation.holders.down = {0}
        found = ask(federation, COUNT.replace("=6", "=6, holders => 'any'"))
        assert found.receipt is not None
        assert any("north" in note for note in found.receipt.warnings)
        there = len(HOLDERS["south"]) + len(HOLDERS["west"])
        assert abs(numbers(found)[0] - there) < 24
        assert federation.spent()[0] == 0
        assert_all_agree(federation)


def test_of_a_table_that_grows_counts_cost_the_sum_over_holders() -> None:
    """Its opening names no holders: each count is priced beside the rows, as on any table."""
    own = schema(ROWS_MAX)
    hours = DateAxis(name="day", low=dt.date(2026, 1, 1), high=dt.date(2026, 1, 9))
    axis = CategoryAxis(name="holder", values=("north", "south"))
    table = replace(own, axes=(*own.axes, axis), holders="holder")
    growing = replace(table, axes=(*table.axes, hours), grows="day")
    holders = Holders("holder", 2)
    plan = [
        PlannedUnitCount(UnitCount(holders.of_holder(QueryBlock(counting()), level), 2), WEIGHT)
        for level in range(2)
    ]
    at_holders, beside = (
        UnitCounts.of(as_seen(one, Funds(BUDGET), "data", None)) for one in (table, growing)
    )
    assert beside.added(plan) == 2 * WEIGHT.units
    assert not beside.costing(plan)
    assert at_holders.added(plan) == 0
    costs = [one.laplace_weight.units for one in at_holders.costing(plan)]
    assert costs == [-(-WEIGHT.units // ROWS_MAX)] * 2
