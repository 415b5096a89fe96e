"""One ledger in PostgreSQL, several servers: one history, one budget, one key."""

import contextlib
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.entries import BudgetSet, TableOpened
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_reader, open_shared_ledger
from accountant.ledger.stores.mark import mark_beside
from cube.refusals import LedgerLost, LedgerUnavailable
from tests.support.postgres import PostgresServer, serving_postgres

SECONDS = 60
OPENED = TableOpened("a schema", "some data", Fraction(1))


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with serving_postgres() as server:
        yield server


@pytest.fixture
def replicas(server: PostgresServer, tmp_path: Path) -> Iterator[tuple[Ledger, Ledger]]:
    key, copy = tmp_path / "one.key", tmp_path / "other.key"
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(open_shared_ledger(server.location(), key))
        for path, to in ((key, copy), (mark_beside(key), mark_beside(copy))):
            to.write_bytes(path.read_bytes())
        other = stack.enter_context(open_shared_ledger(server.location(), copy))
        one.append("people", lambda _history: OPENED)
        yield one, other


def raise_budget(ledger: Ledger) -> int | None:
    """Set a budget that is one more than the newest one: lost updates show."""

    def build(history: TableHistory) -> BudgetSet:
        return BudgetSet(history.budget + 1)

    return ledger.append("people", build)


def test_replicas_decide_on_one_history(
    server: PostgresServer, replicas: tuple[Ledger, Ledger]
) -> None:
    one, other = replicas
    assert one.key == other.key

    def work(ledger: Ledger) -> None:
        for _ in range(10):
            raise_budget(ledger)

    threads = [threading.Thread(target=work, args=(ledger,)) for ledger in replicas * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    for ledger in replicas:
        ledger.refresh()
        assert ledger.history("people").budget == 61
    assert one.position == other.position == (61, one.position[1])
    with contextlib.closing(open_reader(server.location())) as reader:
        assert [entry.seq for entry in reader.entries_after(0)] == list(range(1, 62))


def test_a_replica_goes_on_when_the_database_does(
    server: PostgresServer, replicas: tuple[Ledger, Ledger]
) -> None:
    one, other = replicas
    raise_budget(one)
    other.refresh()
    server.kill()
    for ledger in replicas:
        with pytest.raises(LedgerUnavailable):
            raise_budget(ledger)
        assert not ledger.is_writable
        assert ledger.history("people").opened == OPENED, "what it knows it still knows"
    server.start()
    one.probe()
    assert one.is_writable
    raise_budget(other)
    one.refresh()
    assert one.history("people").budget == other.history("people").budget == 3


def test_a_replica_stops_when_the_database_forgot_what_it_knows(
    server: PostgresServer, replicas: tuple[Ledger, Ledger]
) -> None:
    one, other = replicas
    raise_budget(one)
    with server.connect() as connection:
        connection.execute("ALTER TABLE tacit.entries DISABLE TRIGGER USER")
        connection.execute("DELETE FROM tacit.entries WHERE seq = 2")
    raise_budget(other)  # it never knew; its entry has the number of the one that is gone
    for _ in range(2):
        with pytest.raises(LedgerLost):
            raise_budget(one)
        with pytest.raises(LedgerLost):
            one.refresh()
    server.kill()
    server.start()
    with pytest.raises(LedgerLost):
        one.probe()
    other.probe()
