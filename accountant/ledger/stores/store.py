"""The interface of a store of ledger entries; there is one for SQLite and one for PostgreSQL.

A store keeps rows and their order, durably; it does not know what an entry means. Several processes
may have the same ledger open. One at a time appends, inside `writing`, where it first reads what
others have appended since its last read: so no decision is made on an old history.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

from accountant.ledger.entries import Entry
from cube.refusals import LedgerCorrupt

SCHEMA_VERSION: Final = 2  # of the database; the format of entries has never changed


class Appender(Protocol):
    """The exclusive right to append, for as long as one transaction is open."""

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Entries with a higher number, in order, as this transaction sees them."""
        ...

    def insert(self, entries: Iterable[Entry]) -> None:
        """Append entries; they count once `writing` is left without an exception."""
        ...


class Store(Protocol):
    """One ledger's entries. Thread-safe.

    Every method may raise `LedgerUnavailable`: then nothing is known to be written, and the call
    may be repeated. After `LedgerLost` (a commit whose outcome only a new process can find out) the
    store refuses everything.
    """

    name: str  # for messages; without a password

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every durable entry with a higher number, in order. Waits for no writer."""
        ...

    def writing(self) -> AbstractContextManager[Appender]:
        """A transaction that only one process and thread has at a time.

        Left without an exception, what was inserted is durable; with one, nothing was written.
        """
        ...

    def probe(self) -> None:
        """Write something that is not an entry, durably, to test whether writing is possible."""
        ...

    def close(self) -> None:
        """Close everything. Closing twice does no harm."""
        ...


def unreadable(name: object, problem: object) -> LedgerCorrupt:
    """The refusal of a damaged ledger; nothing is ever repaired silently."""
    return LedgerCorrupt(
        f"The ledger {name} is damaged or was altered: {problem}.",
        hint=f"Restore the ledger from a backup. `tacit audit verify {name}` shows the "
        "first bad entry. Nothing was changed.",
    )
