"""What the owner of a ledger in PostgreSQL keeps: its key, and the roles of the page for owners."""

import contextlib
import itertools
import os
import re
import stat
import threading
from pathlib import Path

import psycopg
import pytest

from accountant.ledger.opening import open_postgres, open_postgres_reader, open_postgres_store
from accountant.ledger.stores.postgres_store import PostgresStore
from cube.refusals import CannotStart, LedgerCorrupt, LedgerMismatch
from tests.support.appending import append
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).resolve().parents[4]
SECONDS = 60
schemas = (f"owned_{number}" for number in itertools.count())


@pytest.fixture
def location(postgres_server: PostgresServer) -> str:
    return postgres_server.location(schema=next(schemas))


def bodies(store: PostgresStore) -> list[str]:
    return [entry.body for entry in store.entries_after(0)]


def test_the_key_is_made_with_a_new_ledger_and_needed_ever_after(
    location: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.key"
    store, key = open_postgres(location, path)
    assert (path.read_bytes(), len(key)) == (key, 32)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.close()
    store, again = open_postgres(location, path)
    assert again == key, "also while there are no entries yet"
    append(store, "first")
    store.close()

    copy = tmp_path / "copy.key"
    copy.write_bytes(key)
    store, again = open_postgres(location, copy)
    assert again == key
    store.close()
    with pytest.raises(LedgerCorrupt, match="is missing"):
        open_postgres(location, tmp_path / "absent.key")
    copy.write_bytes(os.urandom(32))
    with pytest.raises(LedgerMismatch, match="does not belong to the ledger"):
        open_postgres(location, copy)
    copy.write_bytes(b"short")
    with pytest.raises(LedgerCorrupt, match="must hold 32 bytes"):
        open_postgres(location, copy)


def test_a_key_without_a_ledger_begins_no_new_one(location: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.key"
    path.write_bytes(os.urandom(32))
    with pytest.raises(LedgerCorrupt, match="is new, but its key file"):
        open_postgres(location, path)


def test_a_ledger_that_was_brought_from_elsewhere_keeps_its_key(
    location: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.key"
    with contextlib.closing(open_postgres_store(location)) as store:
        append(store, "imported")
    with pytest.raises(LedgerCorrupt, match="is missing"):
        open_postgres(location, path)
    path.write_bytes(os.urandom(32))
    store, key = open_postgres(location, path)
    store.close()
    assert key == path.read_bytes()


def test_two_servers_that_begin_a_ledger_together_never_have_two_keys(
    location: str, tmp_path: Path
) -> None:
    outcomes: list[bytes | CannotStart] = []

    def begin(name: str) -> None:
        try:
            store, key = open_postgres(location, tmp_path / name)
        except CannotStart as error:
            outcomes.append(error)
        else:
            store.close()
            outcomes.append(key)

    threads = [threading.Thread(target=begin, args=(f"{name}.key",)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sum(isinstance(one, bytes) for one in outcomes) == 1
    assert sum(isinstance(one, LedgerCorrupt) for one in outcomes) == 3


def granted(place: int) -> list[bytes]:
    """The SQL that the page for owners gives."""
    page = (ROOT / "docs" / "ledger.md").read_text()
    block = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[place]
    return [f"{statement};".encode() for statement in block.strip().rstrip(";").split(";")]


def test_the_roles_of_the_page_for_owners_are_enough_and_not_more(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    server = postgres_server
    with server.connect() as connection:
        for statement in granted(0):
            connection.execute(statement)
    path = tmp_path / "ledger.key"
    store, key = open_postgres(server.location("money", "tacit_owner"), path)
    store.close()
    with server.connect("money") as connection:
        connection.execute("SET ROLE tacit_owner")
        for statement in granted(1):
            connection.execute(statement)

    location = server.location("money", "tacit")
    store, again = open_postgres(location, path)
    with contextlib.closing(store):
        assert again == key
        append(store, "first")
        store.probe()
        assert bodies(store) == ["first"]
        with contextlib.closing(open_postgres_reader(location)) as reader:
            assert len(list(reader.entries_after(0))) == 1
        for forbidden in (
            "UPDATE tacit.entries SET body = 'forged'",
            "DELETE FROM tacit.entries",
            "TRUNCATE tacit.entries",
            "UPDATE tacit.tacit_meta SET version = 99",
            "UPDATE tacit.tacit_meta SET key_digest = NULL",
            "ALTER TABLE tacit.entries DISABLE TRIGGER USER",
            "DROP TABLE tacit.entries",
            "CREATE TABLE tacit.mine (a int)",
            "LOCK TABLE tacit.entries IN EXCLUSIVE MODE",
        ):
            with pytest.raises(psycopg.Error), store.writing() as appender:
                appender.connection.execute(forbidden.encode())
        assert bodies(store) == ["first"]


def test_an_auditor_only_needs_to_read(postgres_server: PostgresServer) -> None:
    with contextlib.closing(open_postgres_store(postgres_server.location(schema="read"))) as store:
        first = append(store, "first")
    with postgres_server.connect() as connection:
        connection.execute("CREATE ROLE auditor LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA read TO auditor")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA read TO auditor")
    location = postgres_server.location(user="auditor", schema="read")
    with contextlib.closing(open_postgres_reader(location)) as reader:
        assert list(reader.entries_after(0)) == [first]


def test_a_role_without_rights_is_refused_with_a_message(
    postgres_server: PostgresServer, location: str
) -> None:
    open_postgres_store(location).close()
    with postgres_server.connect() as connection:
        connection.execute("CREATE ROLE nobody LOGIN")
    with pytest.raises(CannotStart, match="permission denied"):
        open_postgres_store(location.replace("owner@", "nobody@"))
