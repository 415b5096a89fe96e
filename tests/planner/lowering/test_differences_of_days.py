"""Sums of differences of two days: numbers of each column, against brute force over records."""

import datetime as dt
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import DateAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable, NoNoise

SCHEMA = Schema(
    table="stays",
    axes=(
        DateAxis(name="came", low=dt.date(2024, 2, 26), high=dt.date(2024, 3, 4)),
        DateAxis(name="went", low=dt.date(2024, 2, 27), high=dt.date(2024, 3, 30), null=True),
    ),
    n_records_max=1000,
)
ROWS = np.random.default_rng(15).integers((0, 0), (8, 34), (300, 2))  # went's last level is NULL
STAYS = [
    (SCHEMA.axes[1].levels[went] - SCHEMA.axes[0].levels[came]).days
    for came, went in ROWS
    if went < SCHEMA.axes[1].size - 1
]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("SUM(went - came)", sum(STAYS)),
        ("SUM(came - went)", -sum(STAYS)),
        ("SUM(went - came + 1)", sum(stay + 1 for stay in STAYS)),
        ("AVG(went - came)", np.mean(STAYS)),
        ("COUNT(went - came)", len(STAYS)),
    ],
)
def test_they_are_right_and_their_rows_are_short(
    tmp_path: Path, item: str, expected: float
) -> None:
    with open_ledger(tmp_path / "ledger.db") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(10**6), KnownTable(SCHEMA, ROWS), NoNoise())
        default = AccuracyTarget(half_width=5.0, confidence=0.95)
        table = ServedTable(SCHEMA, default, gate)
        request = QueryRequest(sql=f"SELECT {item} AS answer FROM stays")  # noqa: S608 - fixed
        (row,) = Engine({"stays": table}).answer(request).data.to_pylist()
        assert row["answer"] == pytest.approx(expected)
        history = table.history
        measured = [history[place].block.query for place in range(len(history))]
    factors = [factor for query in measured for term in query.terms for factor in term.factors]
    assert factors
    assert all(len(factor.axes) == 1 for factor in factors)


# Pairs of days of 60 years each are 480 million: what ties them together is refused.
DECADES = Schema(
    table="stays",
    axes=(
        DateAxis(name="born", low=dt.date(1930, 1, 1), high=dt.date(1989, 12, 31), null=True),
        DateAxis(name="died", low=dt.date(1960, 1, 1), high=dt.date(2019, 12, 31), null=True),
    ),
    n_records_max=1000,
)
LIVES = np.random.default_rng(16).integers(0, DECADES.axes[0].size, (200, 2))
LIVES[:9, 0] = DECADES.axes[0].size - 1  # NULL
LIVES[5:20, 1] = DECADES.axes[1].size - 1
BOTH = [
    (DECADES.axes[0].levels[born], DECADES.axes[1].levels[died])
    for born, died in LIVES
    if born < DECADES.axes[0].size - 1 and died < DECADES.axes[1].size - 1
]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("AVG(died - born)", np.mean([(d - b).days for b, d in BOTH])),
        ("AVG((died - born) / 365.25)", np.mean([(d - b).days / 365.25 for b, d in BOTH])),
        (
            "AVG(EXTRACT(YEAR FROM died) - EXTRACT(YEAR FROM born))",
            np.mean([d.year - b.year for b, d in BOTH]),
        ),
        (
            "SUM(2 * (EXTRACT(YEAR FROM died) - 1900) - EXTRACT(MONTH FROM born) / 2.0)",
            sum(2 * (d.year - 1900) - b.month / 2 for b, d in BOTH),
        ),
        ("COUNT(EXTRACT(YEAR FROM died) - EXTRACT(YEAR FROM born))", len(BOTH)),
    ],
)
def test_two_columns_of_many_days_are_never_tied_together(
    tmp_path: Path, item: str, expected: float
) -> None:
    with open_ledger(tmp_path / "ledger.db") as ledger:
        gate = open_table(ledger, DECADES, Fraction(10**6), KnownTable(DECADES, LIVES), NoNoise())
        table = ServedTable(DECADES, AccuracyTarget(half_width=5.0, confidence=0.95), gate)
        request = QueryRequest(sql=f"SELECT {item} AS answer FROM stays")  # noqa: S608 - fixed
        (row,) = Engine({"stays": table}).answer(request).data.to_pylist()
    assert row["answer"] == pytest.approx(expected)


def test_years_since_a_day_are_as_few_numbers_as_the_days(tmp_path: Path) -> None:
    # Rounded as doubles they were a number for each day, which took 8.8 s to price and estimate.
    with open_ledger(tmp_path / "ledger.db") as ledger:
        gate = open_table(ledger, DECADES, Fraction(10**6), KnownTable(DECADES, LIVES), NoNoise())
        table = ServedTable(DECADES, AccuracyTarget(half_width=5.0, confidence=0.95), gate)
        engine = Engine({"stays": table})
        engine.answer(
            QueryRequest(sql="SELECT AVG((DATE '2026-01-01' - born) / 365.25) AS a FROM stays")
        )
        history = table.history
        rows = [history[place].block.query for place in range(len(history))]
        free = engine.answer(QueryRequest(sql="SELECT AVG(DATE '2026-01-01' - born) FROM stays"))
    assert max(factor.n_stored for row in rows for term in row.terms for factor in term.factors) < 9
    assert free.receipt is not None
    assert free.receipt.epsilon_spent == 0
