"""A statement that takes long keeps nobody waiting, ends, and is paid for only if answered."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.gate.gate import CellCounts
from accountant.grouping import Grouping
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.pace import Deadline, checkpoint, paced
from cube.refusals import BudgetExhausted, TooLarge, TooSlow
from planner.measuring.choose import plan_purchases
from proxy.api.requests import Caller
from proxy.tables import acquisition as buying
from proxy.tables import snapshot as table_snapshot
from proxy.tables.acquisition import SecondLook
from tests.support.slow_servers import Server, epsilon, starting, until

ANN = Caller(Payer("ann"), Role.ANALYST, ("people",))
BOB = Caller(Payer("bob"), Role.ANALYST, ("people",))
LONG = "SELECT COUNT(*) FROM people WHERE age < 30"
SHORT = "SELECT COUNT(*) FROM people WHERE age < 40"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with starting(tmp_path) as start:
        yield start()


class Stuck:
    """The first plan that is made waits until it may go on; all others are made as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self._plan = plan_purchases
        monkeypatch.setattr(table_snapshot, "plan_purchases", self)

    def __call__(self, *asked: Any, **how: Any) -> Any:
        if not self.begun.is_set():
            self.begun.set()
            assert self.go.wait(30)
        return self._plan(*asked, **how)


class Clock:
    """The machine's clock, and what a test lets pass at once."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped


def test_others_look_and_buy_while_a_plan_takes_long(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ask(SHORT, caller=BOB)
    stuck = Stuck(monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(server.ask, LONG, caller=ANN)
        assert stuck.begun.wait(30)
        assert epsilon(pool.submit(server.ask, SHORT, caller=BOB).result(30)) == 0
        finer = pool.submit(server.ask, SHORT, 10.0, BOB).result(30)
        assert epsilon(finer) > 0
        stuck.go.set()
        assert epsilon(long.result(30)) >= 0
    assert epsilon(server.ask(LONG, caller=ANN)) == 0


def test_a_plan_that_others_overtook_is_made_on_what_they_bought(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both want the same: whoever planned too long finds it bought, and pays nothing."""
    stuck = Stuck(monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(server.ask, SHORT, caller=ANN)
        assert stuck.begun.wait(30)
        paid = epsilon(pool.submit(server.ask, SHORT, caller=BOB).result(30))
        stuck.go.set()
        assert paid > 0
        assert epsilon(long.result(30)) == 0
    assert server.spent == paid


def test_whoever_is_overtaken_again_and_again_buys_in_the_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        server.table.purchasing.turns, "_seconds", 0.0
    )  # every turn is over at once
    monkeypatch.setattr(server.table.purchasing.in_flight, "are_kept", lambda _promises: False)
    plans: list[SecondLook | None] = []
    plain = buying._plan

    def planned(*asked: Any) -> SecondLook | None:
        plans.append(plain(*asked))
        return plans[-1]

    monkeypatch.setattr(buying, "_plan", planned)

    def overtaken() -> None:
        with server.table.purchasing.turns.taken():
            pass

    taking = server.table.purchasing.turns.kept

    def kept(turn: Any) -> Any:
        overtaken()
        return taking(turn)

    monkeypatch.setattr(server.table.purchasing.turns, "kept", kept)
    assert epsilon(server.ask(SHORT)) > 0
    assert len(plans) == buying.N_OVERTAKEN_MAX + 1
    assert len(server.gate.payments()) == 1


def test_nothing_is_charged_that_could_not_be_answered_in_time(server: Server) -> None:
    with paced(Deadline(2.5)), pytest.raises(TooSlow, match="took longer than the allowed"):
        server.ask(SHORT)
    assert server.spent == 0
    with paced(Deadline(60.0)):
        assert epsilon(server.ask(SHORT)) > 0


def test_a_free_answer_needs_no_time_in_reserve(server: Server) -> None:
    server.ask(SHORT)
    with paced(Deadline(2.5)):
        assert epsilon(server.ask(SHORT)) == 0


def test_what_is_paid_for_is_answered_though_the_time_is_over(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("cube.pace.time", clock)
    measure = server.source.measure

    def read(grouping: Grouping) -> CellCounts:
        clock.skipped += 60.0
        return measure(grouping)

    monkeypatch.setattr(server.source, "measure", read)
    monkeypatch.setattr("proxy.tables.in_flight.ANSWER_SECONDS", 0.0)
    with paced(Deadline(30.0)):
        assert epsilon(server.ask("SELECT age, COUNT(*) * 1.0 / 7 AS n FROM people GROUP BY 1")) > 0
        checkpoint()
        with pytest.raises(TooSlow):
            checkpoint(0.1)
    assert clock.skipped, "the time was over while the data was read"


def test_whoever_waits_for_another_of_the_same_purse_has_a_time_of_their_own(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Stuck(monkeypatch)

    def hurried() -> None:
        with paced(Deadline(1.2)):
            server.ask(SHORT)

    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(server.ask, LONG)
        assert stuck.begun.wait(30)
        until(lambda: server.table._acquisition.queue.is_led)
        with pytest.raises(TooSlow):
            pool.submit(hurried).result(30)
        stuck.go.set()
        assert epsilon(long.result(30)) > 0


def test_a_refusal_comes_without_advice_rather_than_late(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BudgetExhausted) as full:
        server.ask(SHORT, 0.01)
    assert "What is left pays for" in str(full.value.hint)
    monkeypatch.setattr("proxy.engine.search.SECONDS_MAX", -1.0)
    with pytest.raises(BudgetExhausted) as short:
        server.ask(SHORT, 0.01)
    assert "pays for" not in str(short.value.hint)
    assert short.value.message == full.value.message


@pytest.mark.processes  # its time is spent in one
def test_what_takes_too_long_to_compute_from_answers_is_refused_unpaid(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.outer_sql.postprocessing.SECONDS_MAX", 0.3)
    groups = "(SELECT age, COUNT(*) AS n FROM people GROUP BY age)"
    joined = ", ".join(f"{groups} g{place}" for place in range(6))
    condition = " AND ".join(f"g{place}.n + g{place + 1}.n > -1" for place in range(5))
    with pytest.raises(TooLarge, match="too long"):
        server.ask(f"SELECT COUNT(*) AS n FROM {joined} WHERE {condition}")  # noqa: S608 - our own text
    assert server.spent == Fraction(0)


def test_what_differs_in_every_row_is_tried_before_it_is_paid(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all answers were one, this would join nothing, and take no time."""
    monkeypatch.setattr("proxy.outer_sql.postprocessing.SECONDS_MAX", 0.3)
    groups = "(SELECT age, COUNT(*) AS n FROM people GROUP BY age)"
    joined = ", ".join(f"{groups} g{place}" for place in range(6))
    condition = " AND ".join(f"g{place}.n <> g{place + 1}.n" for place in range(5))
    with pytest.raises(TooLarge, match="too long"):
        server.ask(f"SELECT COUNT(*) AS n FROM {joined} WHERE {condition}")  # noqa: S608 - our own text
    assert server.spent == Fraction(0)


def test_texts_of_answers_that_take_too_much_memory_are_refused_unpaid(server: Server) -> None:
    long = "REPEAT(REPEAT(age::text, 1000), 50) AS x"
    wide = ", ".join(f"{long}{place}" for place in range(60))
    sql = f"SELECT {wide} FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age) t"  # noqa: S608
    with pytest.raises(TooLarge):
        server.ask(sql)
    assert server.spent == Fraction(0)
