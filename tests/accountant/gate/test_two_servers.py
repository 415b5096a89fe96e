"""Two servers of one ledger that begin with Gaussian noise at once: one account, one constant."""

import contextlib
import math
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.cost.zcdp_account import GaussianAccount
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_shared_ledger
from accountant.ledger.stores.mark import mark_beside
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement, Precision
from cube.refusals import InvalidRequest
from tests.support.fakes import KnownTable
from tests.support.gaussian import BILLIONTH
from tests.support.postgres import serving_postgres
from tests.support.seven_people import BUDGET, BY_SEX, EVERYONE, RECORDS, SCHEMA

SECONDS = 60
FINE = Precision.at_least(Fraction(1, 1000))
ORDERS = (Fraction(60), Fraction(90))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[tuple[Gate, Ledger], ...]]:
    with serving_postgres() as database, contextlib.ExitStack() as stack:
        key, copy = tmp_path / "one.key", tmp_path / "other.key"
        one = stack.enter_context(open_shared_ledger(database.location(), key))
        for path, to in ((key, copy), (mark_beside(key), mark_beside(copy))):
            to.write_bytes(path.read_bytes())
        other = stack.enter_context(open_shared_ledger(database.location(), copy))
        yield tuple(
            (open_table(ledger, SCHEMA, BUDGET, KnownTable(SCHEMA, RECORDS), SystemNoise()), ledger)
            for ledger in (one, other)
        )


def planned(order: Fraction, delta: Fraction = BILLIONTH) -> PlannedMeasurement:
    return PlannedMeasurement(EVERYONE, FINE, terms=GaussianTerms(delta, order))


def test_two_that_begin_at_once_pay_the_constant_once_and_keep_one_order(
    servers: tuple[tuple[Gate, Ledger], ...],
) -> None:
    together = threading.Barrier(2)

    def begin(gate: Gate, order: Fraction) -> None:
        gate.price([planned(order)])
        together.wait(SECONDS)
        gate.measure([planned(order)], Payer("ann"), epsilon_cap=None)

    threads = [
        threading.Thread(target=begin, args=(gate, order))
        for (gate, _), order in zip(servers, ORDERS, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    for gate, ledger in servers:
        gate.refresh()
        terms = gate.history.gaussian.terms
        assert terms is not None
        assert terms.order in ORDERS
        each = math.ceil(terms.order * FINE.exact * UNITS_PER_EPSILON)
        assert gate.history.units_spent == GaussianAccount(terms).units + 2 * each
        assert {payment.charge.terms for payment in gate.payments()} == {terms}
        assert len(gate.measurements()) == 2
        assert verify(ledger.entries()).problem is None


def test_what_was_planned_before_another_began_is_charged_on_the_others_terms_or_not_at_all(
    servers: tuple[tuple[Gate, Ledger], ...],
) -> None:
    (first, _), (second, ledger) = servers
    n_read = len(second.history.read)
    first.measure([planned(ORDERS[0])], Payer("ann"), epsilon_cap=None)
    with pytest.raises(StalePlan):
        second.charge([planned(ORDERS[1])], Payer("bob"), epsilon_cap=None, n_read=n_read)
    with pytest.raises(InvalidRequest, match="another delta"):
        second.charge([planned(ORDERS[1], 2 * BILLIONTH)], Payer("bob"), epsilon_cap=None)
    assert len(second.payments()) == 1
    by_sex = PlannedMeasurement(BY_SEX, FINE, terms=GaussianTerms(BILLIONTH, ORDERS[1]))
    payment = second.charge([by_sex], Payer("bob"), epsilon_cap=None)
    assert payment.charge.terms == GaussianTerms(BILLIONTH, ORDERS[0])
    assert payment.units == math.ceil(ORDERS[0] * FINE.exact * UNITS_PER_EPSILON)
    second.complete(payment.seq)
    assert verify(ledger.entries()).problem is None


def test_of_two_that_raise_the_same_row_one_is_told_to_plan_again(
    servers: tuple[tuple[Gate, Ledger], ...],
) -> None:
    (first, _), (second, ledger) = servers
    first.measure([planned(ORDERS[0])], Payer("ann"), epsilon_cap=None)
    second.refresh()
    raised = PlannedMeasurement(
        EVERYONE, Precision(2 * FINE.units), 0, GaussianTerms(BILLIONTH, ORDERS[0])
    )
    second.price([raised])
    waiting = first.charge([raised], Payer("ann"), epsilon_cap=None)
    with pytest.raises(StalePlan, match="is pending"):
        second.charge([raised], Payer("bob"), epsilon_cap=None)
    turn = second.take_over(waiting.seq, 0)
    assert turn is not None
    taken = second.complete(waiting.seq)
    assert first.complete(waiting.seq) is not None, "what the other drew, not a draw of its own"
    first.refresh()
    assert taken is not None
    assert first.measurements()[1].lattice_values == taken[0].lattice_values
    assert len(first.measurements()) == 2
    with pytest.raises(StalePlan, match="already been raised"):
        first.charge([raised], Payer("ann"), epsilon_cap=None)
    assert verify(ledger.entries()).problem is None
