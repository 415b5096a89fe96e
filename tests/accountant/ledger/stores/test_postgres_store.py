"""What only a ledger in PostgreSQL has to ensure: its server and its commits."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from accountant.ledger.opening import open_postgres_store
from accountant.ledger.stores import postgres_database as postgres_schema
from accountant.ledger.stores import postgres_store
from accountant.ledger.stores.postgres_location import PASSWORD_FILE_VARIABLE
from accountant.ledger.stores.postgres_store import PostgresStore
from accountant.ledger.stores.store import SCHEMA_VERSION
from cube.refusals import CannotStart, LedgerLost, LedgerUnavailable
from tests.support.appending import append, chain, entry_after
from tests.support.postgres import PostgresServer, serving_postgres, wait_until

ROOT = Path(__file__).resolve().parents[4]
SECONDS = 60


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that may be stopped and reconfigured; it runs when a test begins."""
    with serving_postgres() as server:
        yield server


@pytest.fixture
def server(own_server: PostgresServer) -> Iterator[PostgresServer]:
    with own_server.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS tacit CASCADE")
    before = own_server.process
    yield own_server
    if own_server.process is not before:
        own_server.stop()
        own_server.start()


@pytest.fixture
def location(server: PostgresServer) -> str:
    return server.location()


@pytest.fixture
def store(location: str) -> Iterator[PostgresStore]:
    with contextlib.closing(open_postgres_store(location)) as store:
        yield store


def bodies(store: PostgresStore) -> list[str]:
    return [entry.body for entry in store.entries_after(0)]


def attempts(store: PostgresStore) -> list[Callable[[], object]]:
    return [lambda: bodies(store), lambda: append(store, "more"), store.probe]


def configure(server: PostgresServer, setting: str, value: str) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'".encode())
        connection.execute("SELECT pg_reload_conf()")
        shown = f"SHOW {setting}".encode()
        wait_until(lambda: connection.execute(shown).fetchone() == (value,))


def test_the_migrations_end_at_the_version_of_the_stores() -> None:
    versions = [version for version, _ in postgres_schema.MIGRATIONS]
    assert versions == sorted(set(versions))
    assert versions[-1] == SCHEMA_VERSION


def test_entries_are_not_truncated_and_the_ledger_keeps_its_name(
    server: PostgresServer, store: PostgresStore
) -> None:
    append(store, "first")
    with server.connect() as connection:
        for statement in (
            "TRUNCATE tacit.entries",
            "INSERT INTO tacit.entries TABLE tacit.entries ON CONFLICT (seq) DO UPDATE SET at = ''",
            "DELETE FROM tacit.tacit_meta",
            "UPDATE tacit.tacit_meta SET ledger_id = 'another'",
        ):
            with pytest.raises(psycopg.Error, match="append-only"):
                connection.execute(statement.encode())
    assert bodies(store) == ["first"]


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_forget_is_not_used(
    server: PostgresServer, store: PostgresStore, location: str, setting: str
) -> None:
    append(store, "first")
    server.stop()
    server.start(**{setting: "off"})
    with pytest.raises(CannotStart, match=f"runs with {setting} = off"):
        open_postgres_store(location)
    for attempt in attempts(store):
        with pytest.raises(LedgerUnavailable, match="as the database is set up now"):
            attempt()
    server.stop()
    server.start()
    append(store, "second")
    assert bodies(store) == ["first", "second"]


def test_a_commit_is_synchronous_whatever_the_role_says(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("ALTER ROLE owner SET synchronous_commit = off")
        connection.execute("ALTER ROLE owner SET default_transaction_isolation = 'serializable'")
        connection.execute("ALTER ROLE owner SET default_transaction_read_only = on")
    with contextlib.closing(open_postgres_store(server.location())) as store:
        with store.writing() as appender:
            shown = appender.connection.execute(
                "SELECT current_setting('synchronous_commit'),"
                " current_setting('transaction_isolation')"
            )
            assert shown.fetchone() == ("on", "read committed")
            appender.insert(chain(1))
        store.probe()
    with server.connect() as connection:
        connection.execute("BEGIN READ WRITE")
        connection.execute("ALTER ROLE owner RESET ALL")
        connection.execute("COMMIT")


def test_a_database_of_another_encoding_is_not_used(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(CannotStart, match="uses the encoding SQL_ASCII"):
        open_postgres_store(server.location("bytes"))


def test_a_server_that_restarts_between_two_requests_is_not_noticed(
    server: PostgresServer, store: PostgresStore
) -> None:
    append(store, "first")
    server.stop()
    server.start()
    assert bodies(store) == ["first"]
    server.kill()
    server.start()
    append(store, "second")
    store.probe()
    assert bodies(store) == ["first", "second"]


def test_an_unreachable_server_is_reported_and_may_come_back(
    server: PostgresServer, store: PostgresStore, location: str
) -> None:
    append(store, "first")
    server.stop()
    for attempt in attempts(store):
        with pytest.raises(LedgerUnavailable) as caught:
            attempt()
        assert "its database cannot be reached" in caught.value.message
        assert str(server.folder) not in caught.value.explain()
    with pytest.raises(CannotStart, match="cannot be used"):
        open_postgres_store(location)
    server.start()
    append(store, "second")
    assert bodies(store) == ["first", "second"]


def test_a_transaction_that_loses_its_server_wrote_nothing(
    server: PostgresServer, store: PostgresStore
) -> None:
    def write() -> None:
        with store.writing() as appender:
            appender.insert(chain(2))
            server.kill()

    with pytest.raises(LedgerUnavailable):
        write()
    server.start()
    assert bodies(store) == []


def test_a_failed_transaction_is_never_taken_for_written(store: PostgresStore) -> None:
    first = append(store, "first")

    def write() -> None:
        with store.writing() as appender:
            appender.insert([entry_after(first, "second")])
            with contextlib.suppress(LedgerUnavailable):
                appender.insert([first])  # from here on the transaction can only roll back

    with pytest.raises(LedgerUnavailable, match="rolled back"):
        write()
    assert bodies(store) == ["first"]


def test_an_appender_is_of_no_use_after_its_transaction(store: PostgresStore) -> None:
    with store.writing() as appender:
        pass
    with pytest.raises(RuntimeError, match="after its transaction"):
        appender.insert(chain(1))
    assert bodies(store) == []


def test_waiting_too_long_for_a_writer_is_an_error_that_may_be_retried(
    server: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "LOCK_SECONDS", 1)
    with contextlib.closing(open_postgres_store(server.location())) as other:
        with other.writing(), pytest.raises(LedgerUnavailable, match="another process"):
            append(store, "too early")
        append(store, "then")
    assert bodies(store) == ["then"]


def waiting(server: PostgresServer, waiting_for: str, *, and_end_them: bool = False) -> int:
    """How many of our sessions wait for something in their COMMIT."""
    with server.connect() as connection:
        found = connection.execute(
            "SELECT CASE WHEN %s THEN pg_terminate_backend(pid) END FROM pg_stat_activity"
            " WHERE application_name = 'tacit' AND wait_event = %s",
            [and_end_them, waiting_for],
        )
        return len(found.fetchall())


def commit_until_cut(
    server: PostgresServer, store: PostgresStore, waiting_for: str
) -> LedgerUnavailable | None:
    """Append, cut the connection when the COMMIT has come to wait; what was raised."""
    raised: list[LedgerUnavailable] = []

    def write() -> None:
        try:
            append(store, "in doubt")
        except LedgerUnavailable as error:
            raised.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    wait_until(lambda: waiting(server, waiting_for, and_end_them=True) == 1)
    thread.join(SECONDS)
    return raised[0] if raised else None


def test_a_connection_cut_in_a_commit_that_fails_wrote_nothing(
    server: PostgresServer, store: PostgresStore
) -> None:
    append(store, "first")
    with server.connect() as connection:
        connection.execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON tacit.entries"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()"
        )
    error = commit_until_cut(server, store, "PgSleep")
    assert isinstance(error, LedgerUnavailable)
    with server.connect() as connection:
        connection.execute("DROP FUNCTION wait CASCADE")
    append(store, "second")
    assert bodies(store) == ["first", "second"]


def test_a_connection_cut_in_a_commit_that_succeeds_is_not_taken_for_a_failure(
    server: PostgresServer, store: PostgresStore
) -> None:
    append(store, "first")
    configure(server, "synchronous_standby_names", "nobody")
    error = commit_until_cut(server, store, "SyncRep")
    configure(server, "synchronous_standby_names", "")
    assert isinstance(error, LedgerUnavailable), "nobody said that it was durable"
    with store.writing() as appender:
        assert [entry.body for entry in appender.entries_after(0)] == ["first", "in doubt"]
    append(store, "third")
    assert bodies(store) == ["first", "in doubt", "third"]


def test_the_next_writer_waits_until_a_commit_in_doubt_is_settled(
    server: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "LOCK_SECONDS", 1)
    with contextlib.closing(open_postgres_store(server.location())) as other:
        configure(server, "synchronous_standby_names", "nobody")
        thread = threading.Thread(target=append, args=(store, "slow"))
        thread.start()
        wait_until(lambda: waiting(server, "SyncRep") == 1)
        with pytest.raises(LedgerUnavailable, match="another process"):
            append(other, "too early")
        configure(server, "synchronous_standby_names", "")
        thread.join(SECONDS)
        append(other, "then")
        assert bodies(other) == ["slow", "then"]


def forget_the_last(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("ALTER TABLE tacit.entries DISABLE TRIGGER USER")
        connection.execute(
            "DELETE FROM tacit.entries WHERE seq = (SELECT max(seq) FROM tacit.entries)"
        )
        connection.execute("ALTER TABLE tacit.entries ENABLE TRIGGER USER")


@pytest.mark.parametrize("was_read", [False, True])
def test_a_server_that_comes_back_without_the_last_entries_is_never_used_again(
    server: PostgresServer, location: str, *, was_read: bool
) -> None:
    with contextlib.closing(open_postgres_store(location)) as store:
        for body in ("first", "second"):
            append(store, body)
        with contextlib.closing(open_postgres_store(location)) as other:
            if was_read:
                assert len(bodies(other)) == 2
            forget_the_last(server)
            server.stop()
            server.start()
            for _ in range(2):
                for attempt in attempts(store):
                    with pytest.raises(LedgerLost, match="has lost entries"):
                        attempt()
            if was_read:
                with pytest.raises(LedgerLost, match="has lost entries"):
                    bodies(other)
            else:
                assert bodies(other) == ["first"], "who never saw it cannot miss it"


def test_another_ledger_in_the_place_of_ours_is_never_used(
    server: PostgresServer, location: str, store: PostgresStore
) -> None:
    with server.connect() as connection:
        connection.execute("DROP SCHEMA tacit CASCADE")
    server.stop()
    server.start()
    with pytest.raises(LedgerLost, match="is not the ledger that"):
        bodies(store)
    open_postgres_store(location).close()
    for attempt in attempts(store):
        with pytest.raises(LedgerLost, match="is not the ledger that"):
            attempt()


def test_the_password_comes_from_its_file_and_is_in_no_message(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = server.folder / "data" / "pg_hba.conf"
    trusting = rules.read_text()
    with server.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS guarded")
        connection.execute("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'open sesame'")
    rules.write_text(f"local all guarded scram-sha-256\n{trusting}")
    try:
        with server.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")
        path = tmp_path / "password"
        monkeypatch.setenv(PASSWORD_FILE_VARIABLE, str(path))
        location = server.location(user="guarded")
        path.write_text("close sesame\n")
        wait_until(lambda: refuses(location))
        path.write_text("open sesame\n")
        with contextlib.closing(open_postgres_store(location)) as store:
            append(store, "first")
            path.write_text("close sesame\n")
            server.stop()
            server.start()
            with pytest.raises(LedgerUnavailable) as caught:
                bodies(store)
            assert "sesame" not in caught.value.explain()
            path.write_text("open sesame\n")
            assert bodies(store) == ["first"]
    finally:
        rules.write_text(trusting)


def refuses(location: str) -> bool:
    """Whether a wrong password is noticed: the server reads its rules in its own time."""
    try:
        open_postgres_store(location).close()
    except CannotStart as error:
        assert "sesame" not in error.explain()  # noqa: PT017 - both outcomes are fine
        return True
    return False
