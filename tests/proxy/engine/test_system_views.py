"""The views of `data_privacy`: what they say of a ledger, and what they never say."""

import datetime as dt
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import duckdb
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.history.table_history import Budget
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import (
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
)
from cube.measurement import Measurement, PlannedMeasurement, Precision, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.refusals import BudgetExhausted, UnknownName
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.domain.relations import PRIVACY_SCHEMA
from planner.measuring.weights import weight_for
from proxy.api.requests import LOCAL, TableInfo
from proxy.engine.system_views import (
    REMAINING_SCHEMA,
    VIEW_SCHEMAS,
    TableRecord,
    n_remaining,
    privacy_view,
    remaining_aggregates,
)
from proxy.tables.disclosure import ShownEntries
from tests.support.fakes import KnownTable, NoNoise

CANARY = 7919  # how many records there are; no text of any view may hold it
DEFAULT = AccuracyTarget(half_width=20.0, confidence=0.95)
PEOPLE = Schema(
    table="people",
    axes=(
        IntegerAxis(name="age", low=0, high=9, other=-1),
        CategoryAxis(name="sex", values=("F", "M"), null=True),
        NumericAxis(name="hours", edges=(0.0, 20.0, 40.0)),
        BooleanAxis(name="member"),
        DateAxis(name="joined", low=dt.date(2020, 1, 1), high=dt.date(2020, 1, 31)),
        MeasureAxis(name="income", low=0, high=10, step=Fraction(1, 4)),
    ),
    n_records_max=100_000,
    unit="person_id",
)
INFO = TableInfo(PEOPLE, DEFAULT)
HOURS = "0.0, 20.0, 40.0 (edges)"
JANUARY = ("2020-01-01", "2020-01-31")
INCOME = "0 .. 10 in steps of 0.25"
KEYS = ("columns", "query", "n_rows", "epsilon", "raised_from", "superseded")


def by_sex() -> QueryBlock:
    return QueryBlock(counting(), Partition(("sex",), np.array([0, 1, -1])))


def members() -> QueryBlock:
    return QueryBlock(counting([Factor(("member",), np.array([0, 1]))]))


def planned(block: QueryBlock, weight: str, raised_from: int | None = None) -> PlannedMeasurement:
    return PlannedMeasurement(block, Weight.at_least(Fraction(weight)), raised_from)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    records = np.zeros((CANARY, len(PEOPLE.axes)), dtype=np.int64)
    with open_ledger(tmp_path / "people.ledger") as ledger:
        source = KnownTable(PEOPLE, records)
        yield open_table(ledger, PEOPLE, Fraction(1), source, SystemNoise())


def all_of(gate: Gate) -> TableRecord:
    """What an owner sees."""
    history = gate.history_now()
    return TableRecord(INFO, Budget.of(history), gate.schema, ShownEntries.of(history, LOCAL))


@pytest.fixture
def record(gate: Gate) -> TableRecord:
    """After three purchases by two analysts: two blocks, another table's worth, and a raise."""
    buy = [planned(by_sex(), "1/8"), planned(members(), "1/16")]
    gate.measure(buy, Payer("ada"), epsilon_cap=None)
    gate.measure([planned(by_sex(), "1/4", 0)], Payer("bob"), epsilon_cap=None)
    gate.measure([planned(QueryBlock(counting()), "1/8")], Payer("ada"), epsilon_cap=None)
    return all_of(gate)


@pytest.mark.parametrize("name", VIEW_SCHEMAS)
def test_a_view_has_its_schema_with_and_without_rows(name: str, record: TableRecord) -> None:
    assert privacy_view(name, []).equals(VIEW_SCHEMAS[name].empty_table())
    full = privacy_view(name.upper(), [record])
    assert full.schema.equals(VIEW_SCHEMAS[name])
    assert full.num_rows > 0
    full.validate(full=True)
    for field in full.schema:
        assert field.nullable or full[field.name].null_count == 0
    assert privacy_view(name, [record, record]).num_rows == 2 * full.num_rows


def test_views_can_be_registered_and_asked_by_name(record: TableRecord) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE SCHEMA {PRIVACY_SCHEMA}")
        for name in VIEW_SCHEMAS:
            connection.register("rows", privacy_view(name, [record]))
            connection.execute(f"CREATE TABLE {PRIVACY_SCHEMA}.{name} AS FROM rows")
            connection.unregister("rows")
        sql = """
            SELECT b.spent, b."left", b."window", max(l.epsilon_total), count(*)
            FROM data_privacy.budgets b JOIN data_privacy.losses l USING (table_name)
            GROUP BY ALL
        """
        assert connection.execute(sql).fetchall() == [(0.4375, 0.5625, "NEVER", 0.4375, 3)]


def test_budgets_add_up(record: TableRecord) -> None:
    assert privacy_view("budgets", [record]).to_pylist() == [
        {
            "table_name": "people",
            "budget": 1.0,
            "spent": 0.4375,
            "left": 0.5625,
            "n_measurements": 4,
            "window": "NEVER",
            "renews_at": None,
            "spent_in_year": None,
            "spent_in_all": None,
        }
    ]


def test_losses_are_one_row_a_charge_and_sum_to_what_is_spent(record: TableRecord) -> None:
    rows = privacy_view("losses", [record]).to_pylist()
    assert [(row["analyst"], row["n_blocks"]) for row in rows] == [
        ("ada", 2),
        ("bob", 1),
        ("ada", 1),
    ]
    assert [row["place"] for row in rows] == [0, 1, 2]
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    # Somebody may be a member and of either sex, so that blocks add up.
    assert [row["epsilon"] for row in rows] == [0.1875, 0.125, 0.125]
    assert [row["epsilon_total"] for row in rows] == [0.1875, 0.3125, 0.4375]
    for before, after in pairwise(rows):
        assert before["epsilon_total"] + after["epsilon"] == after["epsilon_total"]
    assert Fraction(rows[-1]["epsilon_total"]) == record.budget.spent


def test_history_is_one_row_a_measurement_and_says_what_was_refined(record: TableRecord) -> None:
    rows = privacy_view("history", [record]).to_pylist()
    scales = [row.pop("noise_scale") for row in rows]
    deviations = [row.pop("deviation") for row in rows]
    assert {(row.pop("noise"), row.pop("rho")) for row in rows} == {("laplace", None)}
    assert rows == [
        {"place": place, "table_name": "people", **dict(zip(KEYS, values, strict=True))}
        for place, values in enumerate(
            [
                ("sex", "COUNT(*) WHERE sex IS NOT NULL GROUP BY sex", 2, 0.125, None, True),
                ("member", "COUNT(*) WHERE member = true", 1, 0.0625, None, False),
                ("sex", "COUNT(*) WHERE sex IS NOT NULL GROUP BY sex", 2, 0.25, 0, False),
                ("", "COUNT(*)", 1, 0.125, None, False),
            ]
        )
    ]
    assert scales == pytest.approx([8, 16, 4, 8], rel=1e-6)
    assert deviations == pytest.approx([np.sqrt(2) * scale for scale in scales], rel=1e-12)


def test_history_tells_rows_with_gaussian_noise_from_others() -> None:
    precision = Precision.at_least(Fraction(1, 200))  # half of one over the variance
    measured = Measurement(members(), precision, 10, math.sqrt(50) * (1 + 1e-12), (0,))
    record = TableRecord(
        INFO,
        Budget(Fraction(1), Fraction(0), 1),
        INFO.schema,
        ShownEntries(measurements=(measured,)),
    )
    (row,) = privacy_view("history", [record]).to_pylist()
    assert (row["noise"], row["epsilon"], row["noise_scale"]) == ("gaussian", None, None)
    assert (row["rho"], row["deviation"]) == pytest.approx((0.005, 10.0), rel=1e-9)


def test_domains_tell_every_column_and_the_unit() -> None:
    record = TableRecord(INFO, Budget(Fraction(1), Fraction(0), 0), INFO.schema)
    rows = privacy_view("domains", [record]).to_pylist()
    assert [tuple(row.values())[1:] for row in rows] == [
        ("age", "integer", "BIGINT", 11, "0", "9", False, True, True, "0 .. 9, other: -1"),
        ("sex", "category", "VARCHAR", 3, None, None, True, True, True, "F, M, NULL"),
        ("hours", "numeric", "DOUBLE", 2, "0.0", "40.0", False, True, True, HOURS),
        ("member", "boolean", "BOOLEAN", 2, None, None, False, True, True, "False, True"),
        ("joined", "date", "DATE", 31, *JANUARY, False, True, True, " .. ".join(JANUARY)),
        ("income", "measure", "DOUBLE", 41, "0", "10", False, True, True, INCOME),
        ("person_id", "unit", None, None, None, None, False, False, False, None),
    ]


def test_no_view_tells_a_count_exact_or_noisy(tmp_path: Path) -> None:
    records = np.zeros((CANARY, len(PEOPLE.axes)), dtype=np.int64)
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, PEOPLE, Fraction(1), KnownTable(PEOPLE, records), NoNoise())
        gate.measure([planned(by_sex(), "1/8")], Payer("ada"), epsilon_cap=None)
        record = all_of(gate)
        assert gate.measurements()[0].values[0] == CANARY  # without noise it would be the count
    told = [privacy_view(name, [record]) for name in VIEW_SCHEMAS]
    told.append(remaining_aggregates("people", [record]))
    assert not any(str(CANARY) in str(table.to_pylist()) for table in told)


def test_unknown_views_and_tables_are_refused_with_a_suggestion(record: TableRecord) -> None:
    with pytest.raises(UnknownName, match="no view 'budget'") as caught:
        privacy_view("budget", [record])
    assert caught.value.hint == "Did you mean 'budgets'?"
    with pytest.raises(UnknownName, match="no private table 'poeple'") as caught:
        remaining_aggregates("poeple", [record])
    assert caught.value.hint == "Did you mean 'people'?"


# What is left.


def with_budget(limit: Fraction, spent: Fraction, target: AccuracyTarget) -> TableRecord:
    return TableRecord(TableInfo(PEOPLE, target), Budget(limit, spent, 0), PEOPLE)


@given(
    half_width=st.floats(1.0, 1e4),
    confidence=st.floats(0.5, 0.9999),
    limit=st.fractions(Fraction(1, 100), 100, max_denominator=10**6),
    share=st.fractions(0, 2, max_denominator=1000),
)
def test_what_is_left_is_the_budget_over_the_price_of_one_fresh_count(
    half_width: float, confidence: float, limit: Fraction, share: Fraction
) -> None:
    """The closed form in 50 digits; margins of the price may cost one in 10**5 of the number."""
    target = AccuracyTarget(half_width=half_width, confidence=confidence)
    found = n_remaining(with_budget(limit, limit * share, target))
    left = max(Fraction(0), limit - limit * share)
    with mpmath.workdps(50):
        price = -mpmath.log(1 - mpmath.mpf(confidence)) / mpmath.mpf(half_width)
        most = mpmath.mpf(left.numerator) / left.denominator / price
        assert found <= most
        assert found >= mpmath.floor(most * (1 - mpmath.mpf("1e-5"))) - 1


def test_just_as_many_counts_can_be_bought_as_are_promised(tmp_path: Path) -> None:
    target = AccuracyTarget(half_width=20.0, confidence=0.95)
    records = np.zeros((3, len(PEOPLE.axes)), dtype=np.int64)
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, PEOPLE, Fraction(1), KnownTable(PEOPLE, records), SystemNoise())
        fresh = PlannedMeasurement(QueryBlock(counting()), weight_for(target, Fraction(1)))
        promised = n_remaining(all_of(gate))
        assert promised == 6  # 20 / ln 20 = 6.68
        for bought in range(promised):
            assert n_remaining(all_of(gate)) == promised - bought
            gate.measure([fresh], Payer("ada"), epsilon_cap=None)
        assert n_remaining(all_of(gate)) == 0
        with pytest.raises(BudgetExhausted):
            gate.measure([fresh], Payer("ada"), epsilon_cap=None)


def test_the_estimate_has_snowflakes_columns(record: TableRecord) -> None:
    found = remaining_aggregates("People", [record])
    assert found.schema.equals(REMAINING_SCHEMA)
    assert found.to_pylist() == [
        {
            "number_of_remaining_dp_aggregates": 3,  # 0.5625 * 20 / ln 20 = 3.76
            "budget_limit": 1.0,
            "budget_window": "NEVER",
            "budget_spent": 0.4375,
        }
    ]


def test_a_default_that_asks_for_no_noise_leaves_nothing() -> None:
    target = AccuracyTarget(half_width=1e-9, confidence=0.95)
    assert n_remaining(with_budget(Fraction(1), Fraction(0), target)) == 0
    lowered = with_budget(Fraction(1), Fraction(2), DEFAULT)  # the owner lowered the limit
    assert n_remaining(lowered) == 0
    assert privacy_view("budgets", [lowered])["left"].to_pylist() == [0.0]
