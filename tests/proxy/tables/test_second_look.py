"""Plans that another server overtook: kept if they are what is to be bought, made again if not.

The servers are two engines on one ledger file. The other one buys at the moment between the first
one's plan and its charge. The oracle is a ledger on which both bought one after the other.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import pytest

from accountant.ledger.history.raises import StalePlan
from accountant.ledger.limits import Payer
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from cube.refusals import SourceUnavailable
from planner.measuring.offers import PurchasePlan
from proxy.monitoring.events import Stage, Unwatched
from tests.support.slow_servers import Server, StartServer, asking, epsilon, starting, until

BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
YOUNG = "SELECT COUNT(*) AS n FROM people WHERE age < 12"
FREQUENT = "SELECT COUNT(*) AS n FROM people WHERE visits = 3"
BY_MEMBER = "SELECT member, COUNT(*) AS n FROM people GROUP BY member"
COUNT = "SELECT COUNT(*) AS n FROM people"
Asked: TypeAlias = tuple[str, float]  # a statement, and its half-width
PAYER = Payer("ann")


class Meanwhile(Unwatched):
    """Does something when a purchase begins: its plan is made, and nothing is charged yet."""

    def __init__(self) -> None:
        self.done: Callable[[], object] | None = None
        self.n_purchases = 0

    @contextmanager
    def _noted(self) -> Iterator[None]:
        self.n_purchases += 1
        done, self.done = self.done, None
        if done is not None:
            done()
        yield

    def purchase(self) -> AbstractContextManager[None]:
        return self._noted()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    with starting(tmp_path) as another:
        yield another


@pytest.fixture
def start_apart(tmp_path: Path) -> Iterator[StartServer]:
    """Servers of another ledger, of the same rows."""
    (tmp_path / "apart").mkdir()
    with starting(tmp_path / "apart") as another:
        yield another


def overtaken(
    start: StartServer, own: Asked, others: Asked
) -> tuple[Server, Meanwhile, list[Fraction]]:
    """A server that asks, while another buys between its plan and its charge; what each paid."""
    meanwhile = Meanwhile()
    one, other = start(watcher=meanwhile), start()
    paid: list[Fraction] = []
    meanwhile.done = lambda: paid.append(epsilon(other.ask(*others)))
    paid.insert(0, epsilon(one.ask(*own)))
    assert sum(paid, Fraction(0)) == one.spent
    return one, meanwhile, paid


def one_after_the_other(apart: Server, *asked: Asked) -> list[Fraction]:
    return [epsilon(apart.ask(sql, width)) for sql, width in asked]


def test_a_plan_about_something_else_is_charged_as_it_is(
    start: StartServer, start_apart: StartServer
) -> None:
    server, meanwhile, paid = overtaken(start, (YOUNG, 20), (FREQUENT, 20))
    assert meanwhile.n_purchases == 1  # it was not planned and begun again
    first, second = one_after_the_other(start_apart(), (FREQUENT, 20), (YOUNG, 20))
    assert paid == [second, first]
    assert epsilon(server.ask(YOUNG)) == epsilon(server.ask(FREQUENT)) == 0


def test_what_another_has_bought_meanwhile_is_not_bought_again(start: StartServer) -> None:
    server, _, (own, others) = overtaken(start, (BY_CITY, 20), (BY_CITY, 20))
    assert own == 0 < others
    assert len(server.gate.payments()) == 1


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ((BY_CITY, 10), (BY_CITY, 12)),  # the same rows, less precise than they are wanted
        ((COUNT, 20), (BY_CITY, 12)),  # other rows, which say something of what is wanted
        ((BY_MEMBER, 20), (BY_CITY, 20)),  # or will, once it is measured: both add up to the total
    ],
)
def test_what_is_missing_less_is_paid_for_less(
    start: StartServer, start_apart: StartServer, own: Asked, others: Asked
) -> None:
    _, _, paid = overtaken(start, own, others)
    first, second = one_after_the_other(start_apart(), others, own)
    assert paid == [second, first]
    assert second > 0


def test_what_was_promised_and_comes_makes_no_plan_stale(start: StartServer) -> None:
    one, other = start(), start()
    planned = [PlannedMeasurement(QueryBlock(counting(), None), Weight(2**30))]
    seq = one.gate.charge(planned, PAYER, epsilon_cap=None).seq
    other.gate.refresh()
    n_read = len(other.gate.history.read)
    one.gate.complete(seq)
    with pytest.raises(StalePlan):
        other.gate.charge(planned, PAYER, epsilon_cap=None, n_read=n_read)
    other.gate.charge(planned, PAYER, epsilon_cap=None, n_read=n_read, awaited={seq})
    n_read = len(one.gate.history.read)
    with pytest.raises(StalePlan):  # the other one's charge was not promised
        one.gate.charge(planned, PAYER, epsilon_cap=None, n_read=n_read)


def test_promises_are_kept_until_something_else_begins(start: StartServer) -> None:
    server = start()
    purchases = server.table.purchasing.in_flight
    plan = PurchasePlan((PlannedMeasurement(QueryBlock(counting(), None), Weight(2**30)),), ())
    first = purchases.begin(plan, None)
    promises = purchases.promises()
    assert purchases.are_kept(promises)
    purchases.carry_out(first, PAYER, epsilon_cap=None)
    assert purchases.are_kept(promises)  # what was promised has come
    second = purchases.begin(plan, None)
    assert not purchases.are_kept(promises)
    purchases.carry_out(second, PAYER, epsilon_cap=None)
    assert not purchases.are_kept(promises)
    third = purchases.begin(plan, None)
    promises = purchases.promises()
    server.source.is_broken = True
    with pytest.raises(SourceUnavailable):
        purchases.carry_out(third, PAYER, epsilon_cap=None)
    assert not purchases.are_kept(promises)  # what was promised has not come


class Plans(Unwatched):
    """Counts the times that something is priced: a plan, and what it is made beside."""

    n_priced = 0

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        self.n_priced += stage is Stage.PRICE
        return super().stage(stage)


@pytest.mark.parametrize(("seconds", "n_priced"), [(30.0, 1), (0.0, 2)])
def test_what_was_charged_a_moment_ago_is_waited_for(
    start: StartServer, monkeypatch: pytest.MonkeyPatch, seconds: float, n_priced: int
) -> None:
    monkeypatch.setattr("proxy.tables.in_flight.MOMENT_SECONDS", seconds)
    plans = Plans()
    one, other = start(), start(watcher=plans)
    planned = [PlannedMeasurement(QueryBlock(counting(), None), Weight(2**30))]
    seq = one.gate.charge(planned, PAYER, epsilon_cap=None).seq
    other.gate.refresh()
    with asking(other, YOUNG, 1) as answers:
        if seconds:
            time.sleep(0.1)  # time enough to do the wrong thing
        else:
            until(lambda: len(other.gate.payments()) == 2)
        one.gate.complete(seq)
    assert plans.n_priced == n_priced  # without waiting, it is planned beside what is to come
    assert epsilon(answers[0]) > 0
