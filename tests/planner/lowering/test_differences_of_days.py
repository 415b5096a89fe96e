"""Sums of differences of two days: numbers of each column, against brute force over records."""

import datetime as dt
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.open_table import open_table
from accountant.ledger.open_ledger import open_ledger
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
