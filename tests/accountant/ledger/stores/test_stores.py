"""What every store promises, tested on SQLite and on a real PostgreSQL alike."""

import contextlib
import itertools
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.opening import open_postgres_reader
from accountant.ledger.stores.postgres_reader import PostgresReader
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.ledger.stores.store import SCHEMA_VERSION, Store
from cube.refusals import LedgerCorrupt, LedgerLost, LedgerUnavailable
from tests.support.appending import append, chain, entry_after, last_of, opened
from tests.support.examples import examples
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).resolve().parents[4]
SECONDS = 60
schemas = (f"ledger_{number}" for number in itertools.count())


class SqlitePlace:
    """A ledger's file, and whoever may write to it with any tool."""

    error: type[Exception] = sqlite3.DatabaseError

    def __init__(self, path: Path) -> None:
        self.location = str(path)

    def read(self) -> SqliteReader:
        return SqliteReader(Path(self.location))

    def execute(self, statement: str) -> None:
        with contextlib.closing(sqlite3.connect(self.location)) as connection, connection:
            connection.execute(statement)

    def make_newer(self) -> None:
        self.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")

    def make_foreign(self) -> None:
        self.execute("CREATE TABLE entries (somebody TEXT)")


class PostgresPlace:
    """A ledger's schema, and the superuser."""

    error: type[Exception] = psycopg.DatabaseError

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._schema = next(schemas)
        self.location = server.location(schema=self._schema)

    def read(self) -> PostgresReader:
        return open_postgres_reader(self.location)

    def execute(self, statement: str) -> None:
        with self._server.connect() as connection:
            connection.execute(f"SET search_path = {self._schema}")
            connection.execute(statement.encode())

    def make_newer(self) -> None:
        self.execute("UPDATE tacit_meta SET version = version + 1")

    def make_foreign(self) -> None:
        self.execute(f"CREATE SCHEMA {self._schema}")
        self.execute("CREATE TABLE entries (somebody TEXT)")


Place = SqlitePlace | PostgresPlace


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return SqlitePlace(tmp_path / "people.ledger")
    return PostgresPlace(request.getfixturevalue("postgres_server"))


@pytest.fixture
def open_store(place: Place) -> Iterator[Callable[[], Store]]:
    with contextlib.ExitStack() as stack:

        def open_one() -> Store:
            store = opened(place.location)
            stack.callback(store.close)
            return store

        yield open_one


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


OpenStore = Callable[[], Store]


def held(store: Store) -> list[Entry]:
    return list(store.entries_after(0))


def bodies(store: Store) -> list[str]:
    return [entry.body for entry in store.entries_after(0)]


def check_chain(store: Store) -> None:
    head = GENESIS
    for place, entry in enumerate(store.entries_after(0), start=1):
        assert entry.seq == place
        assert entry.follows(head)
        head = entry.digest


def test_entries_come_back_in_order_and_exactly(store: Store) -> None:
    entries = chain(2500)  # more than are read at a time
    with store.writing() as appender:
        appender.insert(reversed(entries[:1000]))
        appender.insert([])
        appender.insert(entries[1000:])
        assert list(appender.entries_after(0)) == entries
    assert held(store) == entries
    assert list(store.entries_after(999)) == entries[999:]
    assert list(store.entries_after(2500)) == []


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(texts=st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT, TEXT), max_size=5))
def test_any_text_is_kept_as_it_is(
    store: Store, texts: list[tuple[str, str, str, str, str]]
) -> None:
    n_before = len(held(store))
    entries = [Entry(n_before + place, *five) for place, five in enumerate(texts, start=1)]
    with store.writing() as appender:
        appender.insert(entries)
    assert list(store.entries_after(n_before)) == entries


def test_what_was_written_is_there_when_it_is_opened_again(open_store: OpenStore) -> None:
    first = open_store()
    written = [append(first, f"{place}") for place in range(3)]
    first.close()
    again = open_store()
    assert held(again) == written
    append(again, "and on")
    assert len(held(again)) == 4


def test_an_exception_undoes_everything_and_blocks_nobody(store: Store) -> None:
    def fail() -> None:
        with store.writing() as appender:
            appender.insert(chain(3))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert held(store) == []
    append(store, "after it")
    assert bodies(store) == ["after it"]


def test_a_number_is_given_once(store: Store) -> None:
    written = append(store, "first")

    def write_again() -> None:
        with store.writing() as appender:
            appender.insert([entry_after(None, "forged")])

    with pytest.raises(LedgerUnavailable) as caught:
        write_again()
    assert not isinstance(caught.value, LedgerLost)
    assert "forged" not in caught.value.explain()
    assert held(store) == [written]
    append(store, "second")
    check_chain(store)


def test_a_writer_sees_what_the_one_before_wrote(open_store: OpenStore) -> None:
    one, other = open_store(), open_store()
    has_entered, may_leave, order = threading.Event(), threading.Event(), []

    def write_slowly() -> None:
        with one.writing() as appender:
            has_entered.set()
            may_leave.wait(SECONDS)
            appender.insert([entry_after(last_of(appender), "one")])
            order.append("one")

    def write_then() -> None:
        has_entered.wait(SECONDS)
        with other.writing() as appender:
            order.append("other")
            appender.insert([entry_after(last_of(appender), "other")])

    threads = [threading.Thread(target=target) for target in (write_slowly, write_then)]
    for thread in threads:
        thread.start()
    has_entered.wait(SECONDS)
    threads[1].join(0.2)
    assert order == [], "the second waits for the first"
    may_leave.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["one", "other"]
    assert bodies(one) == bodies(other) == ["one", "other"]
    check_chain(one)


def test_readers_wait_for_no_writer_and_see_nothing_unfinished(open_store: OpenStore) -> None:
    one, other = open_store(), open_store()
    first = append(one, "first")
    with one.writing() as appender:
        appender.insert([entry_after(first, "second")])
        assert bodies(one) == bodies(other) == ["first"]
        assert [entry.body for entry in appender.entries_after(0)] == ["first", "second"]
    assert bodies(one) == bodies(other) == ["first", "second"]


def test_a_reader_may_stop_in_the_middle(store: Store) -> None:
    with store.writing() as appender:
        appender.insert(chain(2100))
    first, second = store.entries_after(0), store.entries_after(5)
    assert (next(first).seq, next(second).seq, next(first).seq) == (1, 6, 2)
    assert len(held(store)) == 2100
    append(store, "a writer does not mind either")


def test_many_threads_lose_nothing(open_store: OpenStore) -> None:
    stores = [open_store(), open_store()]

    def work(name: int) -> None:
        for place in range(10):
            append(stores[name % 2], f"{name} {place}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    expected = {f"{name} {place}" for name in range(6) for place in range(10)}
    assert sorted(bodies(stores[0])) == sorted(expected)
    check_chain(stores[1])


def test_several_processes_lose_nothing(open_store: OpenStore, place: Place) -> None:
    store = open_store()
    processes = [
        subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "tests.support.appending", place.location, "20", name],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("ann", "bob", "cid")
    ]
    outputs = [process.communicate(timeout=SECONDS) for process in processes]
    assert [error for _, error in outputs] == ["", "", ""]
    acknowledged = [line for output, _ in outputs for line in output.splitlines()]
    assert len(acknowledged) == 60
    assert sorted(bodies(store)) == sorted(acknowledged)
    check_chain(store)


def test_processes_that_begin_a_ledger_together_begin_one(place: Place) -> None:
    found: list[Store | Exception] = []

    def begin() -> None:
        try:
            found.append(opened(place.location))
        except Exception as error:  # noqa: BLE001 - the test says what it is
            found.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    stores = [one for one in found if not isinstance(one, Exception)]
    assert [one for one in found if isinstance(one, Exception)] == []
    for number, store in enumerate(stores):
        append(store, f"{number}")
    assert len(held(stores[0])) == 4
    check_chain(stores[0])
    for store in stores:
        store.close()


def test_a_probe_writes_no_entry(store: Store) -> None:
    store.probe()
    store.probe()
    assert held(store) == []
    append(store, "first")
    store.probe()
    assert bodies(store) == ["first"]


def test_what_is_closed_refuses(store: Store) -> None:
    append(store, "first")
    store.close()
    store.close()
    attempts: list[Callable[[], object]] = [
        lambda: held(store),
        lambda: append(store, "second"),
        store.probe,
    ]
    for attempt in attempts:
        with pytest.raises(LedgerUnavailable):
            attempt()


@pytest.mark.parametrize("statement", ["UPDATE entries SET body = 'forged'", "DELETE FROM entries"])
def test_no_entry_is_changed_or_deleted(store: Store, place: Place, statement: str) -> None:
    append(store, "first")
    with pytest.raises(place.error, match="append-only"):
        place.execute(statement)
    assert bodies(store) == ["first"]


def test_a_ledger_of_a_newer_version_is_left_alone(
    store: Store, place: Place, open_store: OpenStore
) -> None:
    append(store, "first")
    store.close()
    place.make_newer()
    for attempt in (open_store, place.read):
        with pytest.raises(LedgerCorrupt, match="newer Tacit"):
            attempt()


def test_somebody_elses_database_is_left_alone(place: Place, open_store: OpenStore) -> None:
    place.make_foreign()
    for attempt in (open_store, place.read):
        with pytest.raises(LedgerCorrupt, match="not a Tacit ledger"):
            attempt()
    place.execute("INSERT INTO entries VALUES ('still theirs')")


def test_an_auditor_reads_one_moment_and_makes_nothing(place: Place, open_store: OpenStore) -> None:
    with pytest.raises(LedgerCorrupt, match="There is no ledger"):
        place.read()
    store = open_store()
    first = append(store, "first")
    with contextlib.closing(place.read()) as reader:
        assert list(reader.entries_after(0)) == [first]
        append(store, "second")
        assert list(reader.entries_after(0)) == [first]
        assert list(reader.entries_after(1)) == []
    with contextlib.closing(place.read()) as reader:
        assert list(reader.entries_after(0)) == held(store)
