"""A snapshot holds megabytes, and is gone as soon as nobody asks it: it is in no cycle."""

import gc
import weakref
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.axis import CategoryAxis
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from planner.workload import Wanted
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable, NoNoise

SCHEMA = Schema(
    table="t", axes=(CategoryAxis(name="x", values=tuple("abcdefgh")),), n_records_max=1000
)


def wanted(*levels: int) -> Wanted:
    holds = np.isin(np.arange(8), levels).astype(np.int64)
    block = QueryBlock(counting([Factor(("x",), holds)])).primitive[0]
    return Wanted(block, AccuracyTarget(half_width=60.0, confidence=0.95))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    source = KnownTable(SCHEMA, np.zeros((0, 1), dtype=np.int64))
    with open_ledger(tmp_path / "t.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(100), source, NoNoise())
        served = ServedTable(SCHEMA, wanted(0).target, gate, Strategy.AUTO)
        served.acquire([wanted(0, 1)], Payer("me"), None)
        served.acquire([wanted(2)], Payer("me"), None)
        yield served


def test_a_snapshot_that_planned_is_gone_without_the_collector(table: ServedTable) -> None:
    gc.collect()
    gc.disable()
    try:
        snapshot = table.snapshot()
        one = [wanted(0, 3)]
        assert snapshot.plan(one, snapshot.estimates(one)).planned
        held = [weakref.ref(one) for one in (snapshot, snapshot.forecast, snapshot.estimator)]
        del snapshot
        assert [one() for one in held] == [None] * len(held)
    finally:
        gc.enable()
