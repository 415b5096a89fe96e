"""A table that grows: what may be charged, what is read, and what closed rows that change do."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.entries import HorizonAdvanced, Period
from accountant.ledger.history.table_history import Growth
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import SystemNoise
from cube.horizon import Horizon
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Partition, QueryBlock, counting
from cube.refusals import InvalidRequest, LedgerMismatch, SourceUnavailable
from cube.statistic import Choice, ChoiceCandidate, Distance, PlannedStatistic, Score
from tests.support.fakes import KnownTable, NoNoise
from tests.support.growing_table import N_DAYS, RECORDS, SCHEMA, GrowingTable, opened

ANN = Payer("ann")
QUARTER, HALF = Weight.at_least(Fraction(1, 4)), Weight.at_least(Fraction(1, 2))
BY_KIND = QueryBlock(counting(), Partition(("kind",), np.arange(2, dtype=np.int64)))


def up_to(n_days: int, block: QueryBlock = BY_KIND) -> QueryBlock:
    return Horizon("day", N_DAYS, n_days).whole(block)


def buy(gate: Gate, *plan: PlannedMeasurement) -> list[list[float]]:
    return [one.values.tolist() for one in gate.measure(plan, ANN, epsilon_cap=None)]


def counts(n_days: int, records: Sequence[Sequence[int]] = RECORDS.tolist()) -> list[float]:
    kinds = [kind for day, kind in records if day < n_days]
    return [kinds.count(0), kinds.count(1)]


@pytest.mark.parametrize("n_days", [4, N_DAYS])
def test_rows_beyond_the_horizon_are_never_charged(ledger: Ledger, n_days: int) -> None:
    gate = opened(ledger, GrowingTable(), 3)
    before = ledger.position
    with pytest.raises(ValueError, match="beyond the horizon"):
        buy(gate, PlannedMeasurement(up_to(n_days), QUARTER))
    distance = Distance(up_to(n_days), (1, 1))
    asked = [PlannedStatistic(distance, QUARTER)]
    with pytest.raises(ValueError, match="beyond the horizon"):
        gate.charge([], ANN, epsilon_cap=None, statistics=asked)
    assert ledger.position == before


def test_a_choice_is_about_every_row_and_refused(ledger: Ledger) -> None:
    gate = opened(ledger, GrowingTable(), N_DAYS)
    views = tuple(
        Partition((name,), np.arange(size, dtype=np.int64))
        for name, size in (("day", 8), ("kind", 2))
    )
    choice = Choice(Score.DISTANCE, views, (ChoiceCandidate(1, (0,)),))
    asked = [PlannedStatistic(choice, QUARTER)]
    with pytest.raises(InvalidRequest, match="grows"):
        gate.charge([], ANN, epsilon_cap=None, statistics=asked)


def test_new_days_bring_their_own_budget_and_old_rows_stay_exact(ledger: Ledger) -> None:
    gate = opened(ledger, GrowingTable(), 3, NoNoise())
    assert buy(gate, PlannedMeasurement(up_to(3), QUARTER)) == [counts(3)]
    assert gate.advance(6, "owner")
    since = QueryBlock(counting(), Partition(("day",), np.array([-1] * 3 + [0] * 3 + [-1] * 2)))
    assert buy(gate, PlannedMeasurement(since, QUARTER)) == [[sum(counts(6)) - sum(counts(3))]]
    assert gate.history.units_spent == QUARTER.units  # both on cells of their own
    assert buy(gate, PlannedMeasurement(up_to(3), HALF, raised_from=0)) == [counts(3)]
    assert buy(gate, PlannedMeasurement(up_to(6), QUARTER)) == [counts(6)]
    assert gate.history.units_spent == HALF.units + QUARTER.units
    assert gate.history.growth is not None
    assert gate.history.growth.horizon == 6


def test_a_horizon_only_moves_forward(ledger: Ledger) -> None:
    gate = opened(ledger, GrowingTable(), 3)
    before = ledger.position
    assert not gate.advance(3, "owner")
    assert not gate.advance(2, "owner")
    assert ledger.position == before


def test_rows_that_come_later_change_nothing_closed(ledger: Ledger) -> None:
    table = GrowingTable(RECORDS[RECORDS[:, 0] < 3])
    gate = opened(ledger, table, 3, NoNoise())
    table.records = RECORDS
    assert buy(gate, PlannedMeasurement(up_to(3), QUARTER)) == [counts(3)]
    assert gate.advance(5, "owner")
    assert buy(gate, PlannedMeasurement(up_to(5), QUARTER)) == [counts(5)]
    assert table.horizons_read == [3, 5]


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at an advance", "at a start"])
def test_closed_rows_that_changed_are_never_measured(ledger: Ledger, is_restarted: bool) -> None:
    table = GrowingTable()
    gate = opened(ledger, table, 3)
    buy(gate, PlannedMeasurement(up_to(3), QUARTER))
    right = table.records
    table.records = np.append(right, [[1, 1]], axis=0)  # a late row of a closed day
    if is_restarted:
        gate = open_table(ledger, SCHEMA, Fraction(4), table, SystemNoise())
    else:
        with pytest.raises(SourceUnavailable, match="cannot be measured"):
            gate.advance(5, "owner")
    before, read = ledger.position, len(table.horizons_read)
    for _ in range(3):
        with pytest.raises(SourceUnavailable, match="cannot be measured"):
            buy(gate, PlannedMeasurement(up_to(3), HALF, raised_from=0))
    assert ledger.position == before
    assert len(table.horizons_read) <= read + 1  # not read again for every request
    assert [(one.start, one.end) for one in gate.changed_periods()] == [(0, 3)]
    table.records = right
    assert gate.advance(5, "owner")  # which reads anew
    buy(gate, PlannedMeasurement(up_to(3), HALF, raised_from=0))


def test_a_server_that_hears_late_reads_as_far_as_the_ledger_says(ledger: Ledger) -> None:
    here, there = GrowingTable(), GrowingTable()
    gate = opened(ledger, here, 3)
    late = open_table(ledger, SCHEMA, Fraction(4), there, NoNoise())
    late.prepare()
    assert gate.advance(6, "owner")
    paid = gate.charge([PlannedMeasurement(up_to(6), QUARTER)], ANN, epsilon_cap=None)
    assert late.complete_pending() == 1
    assert late.history.measured_under(paid.seq)[0].values.tolist() == counts(6)
    assert there.horizons_read == [3, 6]


def test_two_servers_cannot_both_advance(ledger: Ledger) -> None:
    gate = opened(ledger, GrowingTable(), 3)
    other = open_table(ledger, SCHEMA, Fraction(4), GrowingTable(), SystemNoise())
    growth = gate.history.growth
    assert growth is not None
    moved = iter([other])

    class Interrupted(GrowingTable):
        def read_up_to(self, horizon: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
            for one in moved:
                one.advance(4, "the other")
            return super().read_up_to(horizon)

    third = open_table(ledger, SCHEMA, Fraction(4), Interrupted(), SystemNoise())
    third.advance(5, "late")
    assert third.history.growth is not None
    assert [(one.start, one.end) for one in third.history.growth.periods][:2] == [(0, 3), (3, 4)]


def test_a_table_grows_from_its_opening_on_or_never(ledger: Ledger) -> None:
    opened(ledger, GrowingTable(), 3)
    still = SCHEMA.__class__(table="orders", axes=SCHEMA.axes, n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="grows along day"):
        open_table(ledger, still, Fraction(4), KnownTable(still, RECORDS), SystemNoise())
    with pytest.raises(TypeError, match="disagree on whether the table grows"):
        Gate(ledger, still, GrowingTable(), SystemNoise())
    with pytest.raises(TypeError, match="disagree on whether the table grows"):
        Gate(ledger, SCHEMA, KnownTable(SCHEMA, RECORDS), SystemNoise())


@pytest.mark.parametrize("periods", [[(1, 2)], [(0, 2), (3, 4)], [(0, 2), (1, 3)]])
def test_periods_leave_no_gap(periods: list[tuple[int, int]]) -> None:
    body = HorizonAdvanced(tuple(Period(*one, "x") for one in periods), "owner")
    with pytest.raises(ValueError, match="begin where"):
        Growth("day", N_DAYS).advanced(body)


def test_what_is_spent_of_new_days_is_at_most_what_their_rows_cost(ledger: Ledger) -> None:
    """Every day alone, at one weight: a row a day costs what one day costs."""
    gate = opened(ledger, GrowingTable(), 1)
    for day in range(N_DAYS):
        gate.advance(day + 1, "owner")
        alone = np.array([0 if one == day else -1 for one in range(N_DAYS)], dtype=np.int64)
        buy(gate, PlannedMeasurement(QueryBlock(counting(), Partition(("day",), alone)), QUARTER))
    assert Fraction(gate.history.units_spent, UNITS_PER_EPSILON) == QUARTER.exact


def test_the_last_level_is_readable_too(ledger: Ledger) -> None:
    """Then rows need no end: there is nothing beyond."""
    gate = opened(ledger, GrowingTable(), N_DAYS, NoNoise())
    everything = QueryBlock(counting())
    assert buy(gate, PlannedMeasurement(everything, QUARTER)) == [[len(RECORDS)]]
    verdict = verify(ledger._store.entries_after(0))
    assert verdict.problem is None


def test_no_period_is_beyond_the_last_level() -> None:
    body = HorizonAdvanced((Period(0, N_DAYS + 1, "x"),), "owner")
    with pytest.raises(ValueError, match="after the last level"):
        Growth("day", N_DAYS).advanced(body)
