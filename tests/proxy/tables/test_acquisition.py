"""Requests that lack something at the same moment, and are bought for together."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.measurement import UNITS_PER_EPSILON
from cube.pace import within
from cube.refusals import Refused, SourceUnavailable, TooSlow
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, Caller, QueryRequest, QueryResult
from proxy.monitoring.events import Stage, Unwatched
from proxy.tables.in_flight import ANSWER_SECONDS
from tests.support.slow_servers import Server, epsilon, starting, until

AGES = tuple(
    f"SELECT COUNT(*) AS n FROM people WHERE age BETWEEN {low} AND {low + 5}"  # noqa: S608 - our own numbers
    for low in range(0, 60, 10)
)
ANN = Caller(Payer("ann"), Role.ANALYST, ("people",))
BOB = Caller(Payer("bob"), Role.ANALYST, ("people",))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with starting(tmp_path) as start:
        yield start()


@contextmanager
def held_up(server: Server) -> Iterator[None]:
    """Nobody can plan a purchase until the block is left."""
    turns = server.table.purchasing.turns
    turns._seconds = 60.0
    with turns.taken():
        yield


def test_what_several_lack_at_once_is_charged_once(server: Server) -> None:
    answers = [one.result() for one in meeting(server, AGES)]
    assert len(server.gate.payments()) == 1
    assert sum(map(epsilon, answers), Fraction(0)) == server.spent
    for sql, answer in zip(AGES, answers, strict=True):
        assert half_width(answer) <= 20 * (1 + 1e-9)
        assert epsilon(server.ask(sql)) == 0


def test_what_is_bought_together_costs_no_more_than_the_dearest_of_it_alone(
    server: Server, tmp_path: Path
) -> None:
    """Ranges that share no person: their costs do not add up, whoever buys them."""
    for one in meeting(server, AGES):
        one.result()
    (tmp_path / "alone").mkdir()
    with starting(tmp_path / "alone") as start:
        alone = start()
        alone.ask(AGES[0])
        assert server.spent == alone.spent


def test_several_purses_pay_for_what_each_of_them_lacks(server: Server) -> None:
    callers = [ANN, BOB] * 3
    answers = [one.result() for one in meeting(server, AGES, callers)]
    payments = server.gate.payments()
    for caller in (ANN, BOB):
        own = [epsilon(one) for one, who in zip(answers, callers, strict=True) if who is caller]
        paid = [one.units for one in payments if one.charge.payer == caller.payer]
        assert sum(own, Fraction(0)) == Fraction(sum(paid), UNITS_PER_EPSILON)
    assert {one.charge.payer for one in payments} == {ANN.payer, BOB.payer}


def test_nobody_is_refused_for_what_another_wanted(server: Server) -> None:
    """One wants more than the table's budget; the others, who wait with it, get their answers."""
    half_widths = [20.0] * len(AGES)
    half_widths[0] = half_widths[3] = 0.01
    asked = meeting(server, AGES, half_widths=half_widths)
    for one, wanted in zip(asked, half_widths, strict=True):
        if wanted < 1:
            with pytest.raises(Refused, match=r"has .* left"):
                one.result()
        else:
            assert half_width(one.result()) <= wanted * (1 + 1e-9)
    kept = [epsilon(one.result()) for one in asked if one.exception() is None]
    assert sum(kept, Fraction(0)) == server.spent


def test_a_cap_binds_its_own_request_alone(server: Server) -> None:
    caps = [None, Fraction(1, 1000), None, Fraction(3), None, None]
    half_widths = [20.0, 5.0, 20.0, 20.0, 20.0, 20.0]  # ages are disjoint: only that one is dear
    asked = meeting(server, AGES, half_widths=half_widths, caps=caps)
    with pytest.raises(Refused, match="more than the cap"):
        asked[1].result()
    answers = [one.result() for one in asked if one is not asked[1]]
    assert epsilon(asked[3].result()) <= 3
    assert sum(map(epsilon, answers), Fraction(0)) == server.spent


def test_all_who_wait_are_told_when_the_data_is_gone(server: Server) -> None:
    server.source.is_broken = True
    for one in meeting(server, AGES):
        with pytest.raises(SourceUnavailable):
            one.result()
    assert len(server.gate.payments()) == 1
    server.source.is_broken = False
    spent = server.spent
    assert any(epsilon(server.ask(sql)) == 0 for sql in AGES), "what was charged is not lost"
    assert server.spent >= spent


def test_whoever_waits_too_long_is_told_so(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(2) as pool, held_up(server):
        first = pool.submit(server.ask, AGES[0])
        until(lambda: server.table._acquisition.queue.is_led)
        monkeypatch.setattr("proxy.tables.in_flight.WAIT_SECONDS_MAX", 0.05)
        with pytest.raises(SourceUnavailable, match="have not come"):
            pool.submit(server.ask, AGES[1]).result()
    assert epsilon(first.result()) > 0
    assert len(server.gate.measurements()) == 1, "who gave up is not bought for"


def meeting(
    server: Server,
    statements: Sequence[str],
    callers: Sequence[Caller] = (),
    *,
    half_widths: Sequence[float] = (),
    caps: Sequence[Fraction | None] = (),
) -> list[Future[QueryResult]]:
    """Ask several statements so that all of them wait before anything is planned; all are over."""
    n = len(statements)
    asked = zip(
        statements,
        callers or [LOCAL] * n,
        half_widths or [20.0] * n,
        caps or [None] * n,
        strict=True,
    )

    def ask(sql: str, caller: Caller, half_width: float, cap: Fraction | None) -> QueryResult:
        target = RequestedTarget(half_width=half_width, confidence=0.95, epsilon_cap=cap)
        return server.engine.answer(QueryRequest(sql=sql, target=target, caller=caller))

    n_leading = len(set(callers)) or 1
    with ThreadPoolExecutor(n) as pool:
        with held_up(server):
            running = [pool.submit(ask, *one) for one in asked]
            until(lambda: server.table._acquisition.queue.n_waiting == n - n_leading)
        return running


def half_width(release: QueryResult) -> float:
    assert release.receipt is not None
    (column,) = release.receipt.columns
    return float(column.high[0] - column.low[0]) / 2


class Plans(Unwatched):
    """Counts the times that something is priced."""

    n_priced = 0

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        self.n_priced += stage is Stage.PRICE
        return super().stage(stage)


def test_nothing_is_planned_that_could_not_be_charged_in_time(tmp_path: Path) -> None:
    plans = Plans()
    with starting(tmp_path) as start:
        server = start(watcher=plans)
        with pytest.raises(TooSlow), within(ANSWER_SECONDS / 2):
            server.ask(AGES[0])
        assert plans.n_priced == 0
        assert server.spent == 0
        server.ask(AGES[0])
        assert plans.n_priced == 1
        with within(ANSWER_SECONDS / 2):
            assert epsilon(server.ask(AGES[0])) == 0  # what is known needs no purchase
