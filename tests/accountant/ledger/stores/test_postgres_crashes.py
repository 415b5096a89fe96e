"""PostgreSQL killed, its sessions ended, its clients killed, all under load: nothing is lost.

What a store said is durable stays, exactly as it was; what is tried again after a doubt is never
there twice. A machine that loses its power is not simulated: `fsync` is what is for that.
"""

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import LiteralString, Self, cast

import psycopg
import pytest

from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.opening import open_postgres_store
from accountant.ledger.stores.postgres_store import PostgresStore
from cube.refusals import LedgerLost, LedgerUnavailable
from tests.support.appending import entry_after
from tests.support.postgres import PostgresServer, serving_postgres, wait_until

ROOT = Path(__file__).resolve().parents[4]
SECONDS = 60
N_STORES = 2
N_THREADS = 4


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with serving_postgres() as server:
        yield server


class Workers:
    """Threads that append through several stores, each trying again until it is done."""

    def __init__(self, location: str) -> None:
        self.stores = [open_postgres_store(location) for _ in range(N_STORES)]
        self.acknowledged: list[Entry] = []  # what `writing` was left for without an exception
        self.wanted: list[str] = []
        self.n_doubts = 0
        self.problems: list[Exception] = []
        self._is_over = threading.Event()
        self._is_abandoned = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(name,)) for name in range(N_THREADS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, exception: type[BaseException] | None, *_details: object) -> None:
        self._is_over.set()
        if exception is not None:  # nobody waits for what may never come
            self._is_abandoned.set()
        for thread in self._threads:
            thread.join(SECONDS)
        for store in self.stores:
            store.close()

    def wait_for_more(self, n_more: int) -> None:
        """Until as many have been acknowledged since now."""
        enough = len(self.acknowledged) + n_more
        wait_until(lambda: bool(self.problems) or len(self.acknowledged) >= enough)
        assert self.problems == []

    def _work(self, name: int) -> None:
        place = 0
        try:
            while not self._is_over.is_set():
                self._append_surely(self.stores[name % N_STORES], f"{name} {place}")
                place += 1
        except Exception as error:  # noqa: BLE001 - the test says what it is
            self.problems.append(error)

    def _append_surely(self, store: PostgresStore, body: str) -> None:
        self.wanted.append(body)
        while not self._is_abandoned.is_set():
            try:
                entry = append_if_absent(store, body)
            except LedgerLost:
                raise
            except LedgerUnavailable:
                self.n_doubts += 1
                time.sleep(0.01)
            else:
                self.acknowledged += [entry] if entry is not None else []
                return


def append_if_absent(store: PostgresStore, body: str) -> Entry | None:
    with store.writing() as appender:
        entries = list(appender.entries_after(0))
        if any(entry.body == body for entry in entries):
            return None
        entry = entry_after(entries[-1] if entries else None, body)
        appender.insert([entry])
    return entry


def check(server: PostgresServer, workers: Workers) -> None:
    with contextlib.closing(open_postgres_store(server.location())) as store:
        entries = list(store.entries_after(0))
    head = GENESIS
    for place, entry in enumerate(entries, start=1):
        assert entry.seq == place
        assert entry.follows(head)
        head = entry.digest
    assert workers.problems == []
    assert set(workers.acknowledged) <= set(entries)
    assert sorted(entry.body for entry in entries) == sorted(workers.wanted)


def disturb(server: PostgresServer, n_times: int, trouble: Callable[[], None]) -> None:
    """Make trouble at random moments of a load, and check what came of it."""
    moments = random.Random(0)  # noqa: S311 - no secret
    with Workers(server.location()) as workers:
        for _ in range(n_times):
            workers.wait_for_more(5)
            time.sleep(moments.uniform(0, 0.05))
            trouble()
        workers.wait_for_more(5)
    check(server, workers)
    assert workers.n_doubts >= n_times, "each time somebody was in the middle of something"


def kill_server(server: PostgresServer, n_times: int) -> None:
    def trouble() -> None:
        server.kill()
        server.start()

    disturb(server, n_times, trouble)


def end_sessions(server: PostgresServer, n_times: int) -> None:
    def trouble() -> None:
        with server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'tacit' AND state <> 'idle'"
            )

    moments = random.Random(1)  # noqa: S311 - no secret
    with Workers(server.location()) as workers:
        for _ in range(n_times):
            workers.wait_for_more(2)
            time.sleep(moments.uniform(0, 0.01))
            trouble()
        workers.wait_for_more(5)
    check(server, workers)
    assert workers.n_doubts >= n_times / 10, "it hit somebody in the middle now and then"


def kill_clients(server: PostgresServer, n_times: int) -> None:
    """Kill processes that append; whatever they printed before is there."""
    location = server.location()
    moments = random.Random(2)  # noqa: S311 - no secret
    printed: list[str] = []
    for place in range(n_times):
        processes = [
            subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "tests.support.appending", location, "100000", name],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in (f"ann {place}", f"bob {place}")
        ]
        for process in processes:
            assert process.stdout is not None
            printed.append(process.stdout.readline().strip())
        time.sleep(moments.uniform(0, 0.05))
        for process in processes:
            process.kill()
            output, _ = process.communicate(timeout=SECONDS)
            printed += output.split("\n")[:-1]
    with contextlib.closing(open_postgres_store(location)) as store:
        append_if_absent(store, "and on")
        bodies = [entry.body for entry in store.entries_after(0)]
    assert len(set(bodies)) == len(bodies)
    assert set(printed) <= set(bodies)
    assert len(printed) >= 2 * n_times


class Readers:
    """Threads that read a store again and again, each trying again until it is told."""

    def __init__(self, store: PostgresStore, n_threads: int) -> None:
        self._store = store
        self.n_reads = 0
        self.problems: list[Exception] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._work) for _ in range(n_threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(SECONDS)

    def _work(self) -> None:
        seq = 0
        try:
            while not self._is_over.is_set():
                with contextlib.suppress(LedgerUnavailable):
                    seq = self._looked(seq)
        except Exception as error:  # noqa: BLE001 - the test says what it is
            self.problems.append(error)

    def _looked(self, seq: int) -> int:
        try:
            for entry in self._store.entries_after(seq):
                seq = entry.seq
        except LedgerLost as error:  # it is a LedgerUnavailable, but one for good
            raise RuntimeError(f"a server says {error.message}") from error
        self.n_reads += 1
        return max(seq - 1, 0)


def end_any_session(server: PostgresServer, seconds: float, n_times_least: int) -> None:
    """End sessions of readers and writers alike, idle or not; each store goes on for ever."""
    n_times, end = 0, time.monotonic() + seconds
    moments = random.Random(3)  # noqa: S311 - no secret
    with Workers(server.location()) as workers, contextlib.ExitStack() as stack:
        readers = [stack.enter_context(Readers(store, 2)) for store in workers.stores]
        with server.connect() as connection:
            while n_times < n_times_least or time.monotonic() < end:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'tacit' AND random() < 0.7"
                )
                n_times += 1
                time.sleep(moments.uniform(0, 0.004))
                assert [one for reader in readers for one in reader.problems] == []
                assert workers.problems == []
        workers.wait_for_more(5)
    check(server, workers)
    assert all(reader.n_reads for reader in readers)


def test_readers_and_writers_whose_sessions_end_go_on(server: PostgresServer) -> None:
    end_any_session(server, 0, 60)


@pytest.mark.slow
def test_readers_and_writers_whose_sessions_end_for_minutes_go_on(server: PostgresServer) -> None:
    end_any_session(server, 180, 1_000)


class Overtaken:
    """A connection that is slow: each time that it is asked for entries, one more has come."""

    def __init__(self, connection: psycopg.Connection, store: PostgresStore) -> None:
        self._connection = connection
        self._store = store

    def execute(
        self, query: LiteralString, params: Sequence[object] | None = None
    ) -> psycopg.Cursor:
        if params is not None and len(params) == 2:
            append_if_absent(self._store, "one that came meanwhile")
        return self._connection.execute(query, params)


def test_an_entry_that_comes_while_a_connection_is_checked_is_no_loss(
    server: PostgresServer,
) -> None:
    with contextlib.closing(open_postgres_store(server.location())) as store:
        append_if_absent(store, "first")
        with server.connect() as connection:
            slow = cast("psycopg.Connection", Overtaken(connection, store))
            store._check_connection(slow)  # a moment that nobody can choose
        assert [one.body for one in store.entries_after(0)] == ["first", "one that came meanwhile"]


def test_a_server_killed_under_load_keeps_what_it_acknowledged(server: PostgresServer) -> None:
    kill_server(server, 3)


def test_sessions_ended_under_load_lose_nothing(server: PostgresServer) -> None:
    end_sessions(server, 10)


def test_a_client_killed_under_load_leaves_what_was_acknowledged(server: PostgresServer) -> None:
    kill_clients(server, 2)


@pytest.mark.slow
def test_a_server_killed_often_under_load_keeps_what_it_acknowledged(
    server: PostgresServer,
) -> None:
    kill_server(server, 20)


@pytest.mark.slow
def test_sessions_ended_often_under_load_lose_nothing(server: PostgresServer) -> None:
    end_sessions(server, 200)


@pytest.mark.slow
def test_clients_killed_often_under_load_leave_what_was_acknowledged(
    server: PostgresServer,
) -> None:
    kill_clients(server, 25)
