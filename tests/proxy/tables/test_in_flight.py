"""Many requests at once, in one process and in several on one ledger: what is bought, and by whom.

The servers of the second part are two engines in this process, each with a ledger object of its own
on the same file: they share nothing but the file, as two processes would.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.entries import LimitSet
from accountant.ledger.limits import Limit, Payer, Subject, Window
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import (
    BudgetExhausted,
    LedgerUnavailable,
    LimitReached,
    Refused,
    SourceUnavailable,
    UnknownName,
)
from planner.workload import RequestedTarget
from proxy.api.requests import Caller, QueryRequest
from tests.support.slow_servers import Server, StartServer, asking, epsilon, starting, until

COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > 40"
BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
ANN = Caller(Payer("ann", ("sales",)), Role.ANALYST, ("people",))
BOB = Caller(Payer("bob", ("sales",)), Role.ANALYST, ("people",))
EVE = Caller(Payer("eve"), Role.ANALYST, ())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    with starting(tmp_path) as another:
        yield another


@pytest.fixture
def server(start: StartServer) -> Server:
    return start()


def test_equal_misses_at_once_are_bought_once(server: Server) -> None:
    server.source.may_read.clear()
    with asking(server, BY_CITY, 12) as answers:
        until(lambda: server.source.n_reads > 0)
        time.sleep(0.1)  # time enough for the others to do the wrong thing
        server.source.may_read.set()
    assert server.source.n_reads == 1
    assert len(server.gate.payments()) == 1
    assert len({tuple(answer.data.column("n").to_pylist()) for answer in answers}) == 1
    assert sorted(map(epsilon, answers)) == [*([Fraction(0)] * 11), server.spent]


def test_a_miss_that_a_purchase_under_way_will_answer_waits_for_it(server: Server) -> None:
    server.source.may_read.clear()
    with asking(server, BY_CITY, 1), asking(server, "SELECT COUNT(*) AS n FROM people", 1) as total:
        until(lambda: server.source.n_reads > 0)
        time.sleep(0.1)
        server.source.may_read.set()
    (answer,) = total
    assert answer.receipt is not None
    (column,) = answer.receipt.columns
    assert column.high[0] - column.low[0] <= 40 * (1 + 1e-9), "as narrow as it was asked for"
    assert (
        sum((Fraction(one.units, UNITS_PER_EPSILON) for one in server.gate.payments()), Fraction(0))
        == server.spent
    )


def test_history_answers_while_a_purchase_waits_for_its_data(server: Server) -> None:
    bought = server.ask(BY_CITY)
    server.source.may_read.clear()
    with asking(server, COUNT, 1):
        until(lambda: server.source.n_reads > 1)
        again = server.ask(BY_CITY)
        assert epsilon(again) == 0
        assert again.data.equals(bought.data)
        server.source.may_read.set()


def test_different_misses_go_on_beside_each_other(server: Server) -> None:
    server.source.may_read.clear()
    by_member = "SELECT member, COUNT(*) AS n FROM people GROUP BY member"
    with asking(server, BY_CITY, 1), asking(server, by_member, 1):
        until(lambda: server.source.n_reads == 2)
        server.source.may_read.set()
    assert server.spent == server.gate.budget().spent > 0


def test_many_different_misses_at_once_spend_what_their_receipts_say(server: Server) -> None:
    statements = [
        f"SELECT COUNT(*) AS n FROM people WHERE age BETWEEN {low} AND {low + width}"  # noqa: S608 - our own numbers
        for low in range(0, 60, 15)
        for width in (3, 9, 20)
    ]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(server.ask, statements * 2))
    assert sum(map(epsilon, answers), Fraction(0)) == server.spent
    for sql in statements:
        assert epsilon(server.ask(sql)) == 0


def test_nothing_new_is_charged_while_the_data_cannot_be_read(server: Server) -> None:
    server.source.is_broken = True
    for sql in (BY_CITY, COUNT, "SELECT COUNT(*) AS n FROM people"):
        with pytest.raises(SourceUnavailable):
            server.ask(sql)
    assert len(server.gate.payments()) == 1
    spent = server.spent
    server.source.is_broken = False
    assert epsilon(server.ask(BY_CITY)) == 0
    assert server.spent == spent


def test_two_servers_on_one_ledger_see_what_the_other_has_bought(start: StartServer) -> None:
    one, other = start(), start()
    bought = one.ask(BY_CITY)
    found = other.ask(BY_CITY)
    assert epsilon(found) == 0
    assert found.data.column("n").equals(bought.data.column("n"))
    assert one.spent == other.spent


def test_equal_misses_on_two_servers_at_once_are_bought_once(start: StartServer) -> None:
    one, other = start(), start()
    one.source.may_read.clear()
    with asking(one, BY_CITY, 4) as here, asking(other, BY_CITY, 4) as there:
        until(lambda: one.source.n_reads + other.source.n_reads > 0)
        time.sleep(0.2)
        one.source.may_read.set()
    assert len({tuple(answer.data.column("n").to_pylist()) for answer in [*here, *there]}) == 1
    one.ledger.refresh()
    assert len(one.gate.payments()) == 1
    assert sum(map(epsilon, [*here, *there]), Fraction(0)) == one.spent


def test_what_a_dead_server_has_paid_for_is_completed_by_another(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.tables.in_flight.PATIENCE_SECONDS", 0.2)
    dead, alive = start(), start()
    dead.source.is_broken = True
    with pytest.raises(SourceUnavailable):
        dead.ask(BY_CITY)
    found = alive.ask(BY_CITY)
    assert epsilon(found) == 0
    assert len(alive.gate.payments()) == 1
    assert epsilon(dead.ask(BY_CITY)) == 0


def test_a_read_longer_than_anybodys_patience_is_finished_by_somebody(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.tables.in_flight.PATIENCE_SECONDS", 0.1)
    servers = [start() for _ in range(3)]
    for server in servers:
        server.source.seconds = 0.5
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda server: server.ask(BY_CITY), servers))
    assert len({tuple(answer.data.column("n").to_pylist()) for answer in answers}) == 1
    assert sum(server.source.n_reads for server in servers) <= 8
    servers[0].ledger.refresh()
    assert len(servers[0].gate.payments()) == 1


def test_what_others_buy_meanwhile_is_no_fault_of_who_only_looks(server: Server) -> None:
    server.ask(BY_CITY)
    is_over = threading.Event()

    def look() -> int:
        n_looks = 0
        while not is_over.is_set():
            target = RequestedTarget(half_width=1.0, confidence=0.95)
            server.engine.explain(QueryRequest(sql=BY_CITY, target=target))
            n_looks += 1
        return n_looks

    with ThreadPoolExecutor(2) as pool:
        looking = [pool.submit(look) for _ in range(2)]
        for step in range(25):
            server.ask(BY_CITY, half_width=19.0 * 0.97**step)
        is_over.set()
        assert all(one.result() for one in looking)


def test_several_servers_under_load_agree_with_a_replay(start: StartServer) -> None:
    servers = [start() for _ in range(3)]
    statements = [
        f"SELECT COUNT(*) AS n FROM people WHERE visits = {visits} AND age > {age}"  # noqa: S608 - our own numbers
        for visits in range(6)
        for age in (20, 50)
    ]
    with ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(server.ask, sql) for sql in statements for server in servers]
        answers = [one.result(timeout=120) for one in asked]
    for server in servers:
        server.ledger.refresh()
    assert len({server.spent for server in servers}) == 1
    assert sum(map(epsilon, answers), Fraction(0)) == servers[0].spent == start().spent


def limit(
    server: Server,
    subject: str,
    epsilon: Fraction | None = None,
    per_query: Fraction | None = None,
) -> None:
    body = LimitSet(Limit(Subject.parse(subject), epsilon, Window.NEVER, per_query), "owner")
    server.ledger.append("people", lambda _history: body)


def test_an_analyst_pays_from_his_own_limit_and_what_is_bought_is_free_for_all(
    server: Server,
) -> None:
    limit(server, "analyst:ann", epsilon=Fraction(1, 4))
    limit(server, "each_analyst", epsilon=Fraction(0))
    with pytest.raises(LimitReached, match="next query of analyst:bob may cost at most 0"):
        server.ask(BY_CITY, caller=BOB)
    assert server.spent == 0
    assert epsilon(server.ask(BY_CITY, caller=ANN)) > 0
    assert epsilon(server.ask(BY_CITY, caller=BOB)) == 0
    with pytest.raises(LimitReached, match="next query of analyst:ann may cost"):
        server.ask(BY_CITY, half_width=1.0, caller=ANN)
    payment = server.gate.payments()[-1]
    assert payment.charge.payer == ANN.payer


def test_a_group_shares_one_limit(server: Server) -> None:
    limit(server, "group:sales", epsilon=Fraction(1, 4))
    first = epsilon(server.ask(BY_CITY, caller=ANN))
    with pytest.raises(LimitReached, match="next query of group:sales may cost") as refused:
        server.ask(BY_CITY, half_width=20 * float(first / (Fraction(1, 4) + first)), caller=BOB)
    assert server.spent == first
    assert refused.value.shortfall.account == "group:sales"
    assert refused.value.shortfall.epsilon_left == Fraction(1, 4) - first


def test_a_cap_on_single_queries_binds_each_of_them(server: Server) -> None:
    limit(server, "analyst:ann", per_query=Fraction(1, 10))
    with pytest.raises(Refused) as refused:
        server.ask(BY_CITY, caller=ANN)
    assert refused.value.code in {"limit_reached", "cost_above_cap"}
    assert server.spent == 0
    cheap = server.ask(BY_CITY, half_width=60.0, caller=ANN)
    assert 0 < epsilon(cheap) <= Fraction(1, 10)


def test_a_refusal_says_what_is_free_and_what_would_fit(start: StartServer) -> None:
    server = start(Fraction(1, 4))
    server.ask(BY_CITY)
    with pytest.raises(BudgetExhausted) as refused:
        server.ask(BY_CITY, half_width=5.0)
    hint = refused.value.hint or ""
    free, fits = (float(text.split()[0].rstrip(".")) for text in hint.split("half_width ")[1:3])
    assert 5 < fits < free <= 20.01
    shortfall = refused.value.shortfall
    assert shortfall.free is not None
    assert shortfall.fitting is not None
    assert (shortfall.free.half_width, shortfall.fitting.half_width) == (free, fits)
    assert shortfall.epsilon_left == Fraction(1, 4) - server.spent < shortfall.epsilon_needed
    spent = server.spent
    assert epsilon(server.ask(BY_CITY, half_width=free)) == 0
    assert server.spent == spent
    assert epsilon(server.ask(BY_CITY, half_width=fits)) > 0
    assert server.spent <= Fraction(1, 4)


def test_a_table_that_a_caller_may_not_know_of_is_not_there(server: Server) -> None:
    with pytest.raises(UnknownName) as hidden:
        server.ask(BY_CITY, caller=EVE)
    with pytest.raises(UnknownName) as missing:
        server.ask(BY_CITY.replace("people", "nobody"), caller=EVE)
    assert hidden.value.explain().replace("people", "nobody") == missing.value.explain()
    assert not server.engine.tables(EVE)
    assert not server.engine.budgets(EVE)
    assert Caller(Payer("all"), Role.AUDITOR, (EVERY_TABLE,)).opens("people")


def test_a_ledger_that_cannot_be_written_refuses_and_history_answers(server: Server) -> None:
    bought = server.ask(BY_CITY)
    store = server.ledger._store._store  # type: ignore[attr-defined]  # below the mark
    (n_pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {n_pages}")  # a full disk
    with pytest.raises(LedgerUnavailable):
        ask_until_it_fails(server)
    assert not server.ledger.is_writable
    assert server.ask(BY_CITY).data.equals(bought.data)
    store._writer.execute("PRAGMA max_page_count = 1000000")  # room again
    server.ledger.probe()
    assert server.ledger.is_writable
    assert epsilon(server.ask(COUNT, half_width=7.0)) > 0


def ask_until_it_fails(server: Server) -> None:
    for age in range(90):
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age = {age}"  # noqa: S608 - our own numbers
        server.ask(sql, half_width=15.0 + age)
