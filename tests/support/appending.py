"""Appending to a store as a ledger does: after what is there, in one transaction.

Run as ``python -m tests.support.appending LOCATION N NAME`` it appends N entries, one a
transaction, and prints each when it is durable.
"""

import sys
from pathlib import Path

from accountant.ledger.entries import GENESIS, Entry, chained_digest
from accountant.ledger.opening import open_postgres_store
from accountant.ledger.stores.postgres_location import is_postgres
from accountant.ledger.stores.sqlite_store import SqliteStore
from accountant.ledger.stores.store import Appender, Store


def entry_after(last: Entry | None, body: str) -> Entry:
    """The next entry of a chain; stores do not mind that nothing has such a kind."""
    seq, head = (1, GENESIS) if last is None else (last.seq + 1, last.digest)
    fields = (seq, "2026-11-21T20:00:00.000+00:00", "note", "people", body)
    return Entry(*fields, digest=chained_digest(head, fields))


def chain(n_entries: int, last: Entry | None = None) -> list[Entry]:
    entries: list[Entry] = []
    for place in range(n_entries):
        last = entry_after(last, f"{place}")
        entries.append(last)
    return entries


def last_of(appender: Appender) -> Entry | None:
    last = None
    for last in appender.entries_after(0):  # noqa: B007 - the last one is what is wanted
        pass
    return last


def append(store: Store, body: str) -> Entry:
    """Append one entry behind whatever is there; it is durable when this returns."""
    with store.writing() as appender:
        entry = entry_after(last_of(appender), body)
        appender.insert([entry])
    return entry


def opened(location: str) -> Store:
    return open_postgres_store(location) if is_postgres(location) else SqliteStore(Path(location))


def main(location: str, n_entries: str, name: str) -> None:
    store = opened(location)
    for place in range(int(n_entries)):
        append(store, f"{name} {place}")
        print(f"{name} {place}", flush=True)  # noqa: T201 - the test reads what is durable
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
