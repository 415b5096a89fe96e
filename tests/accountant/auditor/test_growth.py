"""The auditor on tables that grow: what it follows, and the lies that it finds."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.encoding import encode_block
from cube.horizon import Horizon
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Partition, QueryBlock, counting
from cube.statistic import Distance, PlannedStatistic
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.growing_table import N_DAYS, GrowingTable, opened

ANN, WEIGHT = Payer("ann"), Weight.at_least(Fraction(1, 4))
BY_KIND = QueryBlock(counting(), Partition(("kind",), np.arange(2, dtype=np.int64)))
BY_DAY = QueryBlock(counting(), Partition(("day",), np.array([0, 1, 2, -1, -1, -1, -1, -1])))


def up_to(n_days: int, block: QueryBlock = BY_KIND) -> QueryBlock:
    return Horizon("day", N_DAYS, n_days).whole(block)


@pytest.fixture
def entries(tmp_path: Path) -> list[Entry]:
    """Charges before and after a horizon moved, one of them for a distance."""
    path = tmp_path / "a.ledger"
    with open_ledger(path) as ledger:
        gate = opened(ledger, GrowingTable(), 3)
        plan = [PlannedMeasurement(up_to(3), WEIGHT), PlannedMeasurement(BY_DAY, WEIGHT)]
        gate.measure(plan, ANN, epsilon_cap=None)
        gate.advance(6, "ann")
        gate.measure([PlannedMeasurement(up_to(6), WEIGHT)], ANN, epsilon_cap=None)
        distance = PlannedStatistic(Distance(up_to(6), (1, 1)), WEIGHT)
        gate.complete(gate.charge([], ANN, epsilon_cap=None, statistics=[distance]).seq)
        return list(ledger._store.entries_after(0))


def places(entries: Sequence[Entry], kind: str) -> list[int]:
    return [one.seq for one in entries if one.kind == kind]


def test_it_verifies(entries: Sequence[Entry]) -> None:
    verdict = verify(entries)
    assert verdict.problem is None
    (table,) = verdict.tables
    assert table.spent == table.recomputed == 4 * WEIGHT.exact  # a cell of the first days: all four
    assert table.exact


def test_a_charge_beyond_the_horizon_is_found(entries: Sequence[Entry]) -> None:
    charge, last = places(entries, "charge")[0], places(entries, "charge")[-1]
    for n_days in (4, N_DAYS):
        change = to(encode_block(up_to(n_days)), "blocks", 0, "block")
        assert "beyond the 3 readable levels" in problem_with(entries, charge, change)
        assert_not_opened(entries, charge, change)
    change = to(encode_block(BY_KIND), "statistics", 0, "block")
    assert "beyond the 6 readable levels" in problem_with(entries, last, change)
    assert_not_opened(entries, last, change)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("start", 2, "starts at level 2, but 3"),
        ("start", 4, "starts at level 4"),
        ("end", 3, "end"),
    ],
)
def test_a_gap_or_a_step_back_is_found(
    entries: Sequence[Entry], field: str, value: int, says: str
) -> None:
    advanced = places(entries, "horizon_advanced")[1]
    change = to(value, "periods", 0, field)
    assert says in problem_with(entries, advanced, change)
    assert_not_opened(entries, advanced, change)


def test_a_horizon_moved_less_than_what_was_charged_is_found(entries: Sequence[Entry]) -> None:
    advanced = places(entries, "horizon_advanced")[1]
    change = to(5, "periods", 0, "end")
    assert "beyond the 5 readable" in problem_with(entries, advanced, change)


def test_nothing_grows_that_was_not_opened_so(entries: Sequence[Entry]) -> None:
    for change in (
        lambda body: body.pop("grows"),
        to("kind", "grows"),
        to("x", "rows_fingerprint"),
    ):
        assert problem_with(entries, places(entries, "table_opened")[0], change)
