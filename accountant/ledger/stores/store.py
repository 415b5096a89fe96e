"""Where a ledger's entries lie: what every store can do. SQLite's is one, PostgreSQL's the other.

A store keeps rows and their order, durably; it does not know what an entry means. Several processes
may have the same ledger open. One at a time appends, inside `writing`, where it first reads what
others have appended since it last looked: so nothing is ever decided on an old history.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

from accountant.ledger.entries import Entry
from cube.refusals import LedgerCorrupt

SCHEMA_VERSION: Final = 2  # of the database; entries have had one format since the first


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

    Every method may raise `LedgerUnavailable`: then nothing is known to have been written, and the
    store may be asked again. After `LedgerLost`, a commit whose outcome only a new process can
    tell, it refuses everything.
    """

    name: str  # for messages; without a password

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every durable entry with a higher number, in order. Waits for no writer."""
        ...

    def writing(self) -> AbstractContextManager[Appender]:
        """A transaction that one process and thread at a time may have.

        Left without an exception, what was inserted is durable; with one, nothing was written.
        """
        ...

    def probe(self) -> None:
        """Write something that is no entry, durably, to learn whether that is possible now."""
        ...

    def close(self) -> None:
        """Let go of everything. Closing twice does no harm."""
        ...


def unreadable(name: object, problem: object) -> LedgerCorrupt:
    """The refusal for a damaged ledger; nothing is ever repaired silently."""
    return LedgerCorrupt(
        f"The ledger {name} is damaged or was altered: {problem}.",
        hint=f"`tacit audit verify {name}` shows the first bad entry; nothing was changed. "
        "Restore the ledger from a backup.",
    )
