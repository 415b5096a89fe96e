"""A pending charge: completed once, taken over, never charged again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import pytest

from accountant.gate.gate import Gate, StalePlan
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import PlannedMeasurement, Weight
from cube.refusals import SourceUnavailable
from tests.support.fakes import FailingSource, KnownTable, NoNoise
from tests.support.seven_people import (
    BUDGET,
    BY_SEX,
    EVERYONE,
    FRESH,
    HALF,
    QUARTER,
    RAISE,
    SCHEMA,
    buy,
    plan,
)


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    """A gate that has sold `FRESH` for a quarter of its budget of 1."""
    gate = open_table(ledger, SCHEMA, Fraction(1), table, SystemNoise())
    buy(gate, FRESH)
    return gate


def test_a_source_that_fails_leaves_a_charge_that_is_completed_and_not_made_again(
    ledger: Ledger, table: KnownTable
) -> None:
    source = FailingSource(table, 1, "the disk of the private table is on fire")
    gate = open_table(ledger, SCHEMA, BUDGET, source, NoNoise())
    with pytest.raises(SourceUnavailable) as refused:
        gate.measure(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    assert "fire" not in refused.value.explain()
    assert gate.budget().spent == Fraction(1, 4)
    assert tuple(gate.measurements()) == ()
    assert gate.complete_pending() == 1
    (found,) = gate.measurements()
    assert list(found.values) == [1.0, 3.0]
    assert gate.budget().spent == Fraction(1, 4)
    assert len(gate.measurements()) == 1
    gate.measure(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    assert gate.budget().spent == Fraction(1, 2), "asked once more, it is bought once more"


def test_a_charge_that_two_complete_at_once_is_measured_once(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    payment = gate.charge(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: gate.complete(payment.seq), range(8)))
    assert len(gate.measurements()) == 1
    assert len(table.scopes_read) == 1, "one turn, one draw"
    assert gate.complete(payment.seq) == tuple(gate.measurements())


def test_a_draw_is_kept_only_if_nobody_took_over(ledger: Ledger, table: KnownTable) -> None:
    slow = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    other = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    payment = slow.charge(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    assert other.take_over(payment.seq, 0)
    assert other.take_over(payment.seq, 0) is None, "that turn is over"
    assert slow.complete(payment.seq) is None
    assert tuple(slow.measurements()) == ()
    assert other.complete(payment.seq) == tuple(slow.measurements())
    assert len(slow.measurements()) == 1
    assert slow.take_over(payment.seq, 0) is None
    assert slow.budget().spent == QUARTER.exact


def test_a_pending_charge_is_completed_at_the_next_opening(
    ledger: Ledger, table: KnownTable
) -> None:
    failing = open_table(ledger, SCHEMA, BUDGET, FailingSource(table, 9, ""), NoNoise())
    with pytest.raises(SourceUnavailable):
        failing.measure(plan(BY_SEX, EVERYONE), Payer("ann"), epsilon_cap=None)
    still_failing = open_table(ledger, SCHEMA, BUDGET, FailingSource(table, 9, ""), NoNoise())
    assert tuple(still_failing.measurements()) == ()
    assert len(still_failing.history.pending) == 1
    gate = open_table(ledger, SCHEMA, BUDGET, table, NoNoise())
    assert [list(found.values) for found in gate.measurements()] == [[1.0, 3.0], [7.0]]
    assert gate.complete_pending() == 0
    assert gate.budget().spent == Fraction(1, 2)


@pytest.fixture
def waiting(ledger: Ledger, gate: Gate, table: KnownTable) -> Gate:
    """A gate whose source failed once, under a raise."""
    failing = open_table(ledger, SCHEMA, Fraction(1), FailingSource(table, 1, ""), SystemNoise())
    with pytest.raises(SourceUnavailable):
        buy(failing, RAISE)
    assert gate.budget().spent == Fraction(1, 2)
    assert len(gate.measurements()) == 1
    return failing


def test_a_pending_raise_serves_a_request_for_it_and_is_not_charged_again(waiting: Gate) -> None:
    assert waiting.complete_pending() == 1
    raised = waiting.measurements()[-1]
    assert raised.supersedes == 0
    assert waiting.measurements()[1:] == (raised,)
    assert waiting.budget().spent == Fraction(1, 2)
    with pytest.raises(StalePlan):
        buy(waiting, RAISE)


def test_a_pending_raise_is_not_taken_for_a_new_measurement(waiting: Gate) -> None:
    (fresh,) = waiting.measure([PlannedMeasurement(BY_SEX, HALF)], Payer("bob"), epsilon_cap=None)
    assert fresh.supersedes is None
    assert waiting.complete_pending() == 1
    assert [found.supersedes for found in waiting.measurements()] == [None, None, 0]
    assert waiting.budget().spent == 1


def test_a_pending_raise_goes_before_another_of_the_same_measurement(waiting: Gate) -> None:
    more = replace(RAISE, weight=Weight.at_least(Fraction(3, 4)))
    with pytest.raises(ValueError, match="is pending"):
        buy(waiting, more)
    assert waiting.complete_pending() == 1
    with pytest.raises(StalePlan):
        buy(waiting, more)
    assert [found.weight for found in waiting.measurements()] == [QUARTER, HALF]
    assert waiting.budget().spent == Fraction(1, 2)


def test_a_pending_raise_is_completed_at_the_next_opening(
    ledger: Ledger, table: KnownTable, waiting: Gate
) -> None:
    again = open_table(ledger, SCHEMA, Fraction(1), table, SystemNoise())
    assert [found.supersedes for found in again.measurements()] == [None, 0]
    assert again.complete_pending() == waiting.complete_pending() == 0
