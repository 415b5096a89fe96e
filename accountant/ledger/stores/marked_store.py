"""A store whose ledger has a mark: no commit counts before the mark records it.

    transaction begins -> the mark is found in it -> entries -> commit -> mark -> return to caller

A crash can leave the mark behind the ledger, which is harmless, but never ahead of it. So if the
mark is not found in the ledger, entries were lost: then nothing is written.

Proof: proofs/ledger.md, "The mark".
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator

from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.stores.mark import MarkFile, Position, lost
from accountant.ledger.stores.store import Appender, Store

EntriesAfter = Callable[[int], Iterator[Entry]]


class MarkedStore:
    """A `Store` that keeps a mark of another store.

    Parameters
    ----------
    store : Store
    mark : MarkFile
        Updated from `begin` on.
    """

    def __init__(self, store: Store, mark: MarkFile) -> None:
        self.name = store.name
        self._store = store
        self._mark = mark
        self._found: Position | None = None  # the latest mark that is known to be in the ledger
        self._is_kept = False

    def begin(self, position: Position) -> None:
        """Keep the mark from now on; it also covers what was read before.

        Raises
        ------
        LedgerLost
            If the ledger does not hold what its mark vouches for.
        """
        self._check(self._store.entries_after)
        self._is_kept = True
        self._vouch(position)

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every durable entry with a higher number, in order. Waits for no writer.

        The iteration ends only once the mark covers the entries, too: another process may have been
        killed between its commit and the mark.
        """
        last = None
        for entry in self._store.entries_after(seq):
            last = entry
            yield entry
        if last is not None and self._is_kept:
            position = Position(last.seq, last.digest)
            if position != self._found:
                self._check(self._store.entries_after)
            self._vouch(position)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Appender]:
        """A transaction; what was inserted is durable, and marked, once it is left."""
        with self._store.writing() as appender:
            self._check(appender.entries_after)
            noted = _Appender(appender)
            yield noted
        if noted.last is not None:
            self._vouch(noted.last)

    def probe(self) -> None:
        """Write something that is not an entry, durably, to test whether writing is possible."""
        self._check(self._store.entries_after)
        self._store.probe()
        self._mark.probe()

    def close(self) -> None:
        """Close everything. Closing twice does no harm."""
        self._store.close()

    def _vouch(self, position: Position) -> None:
        if position != self._found:
            self._mark.advance(position)
            self._found = position

    def _check(self, entries_after: EntriesAfter) -> None:
        marked = self._mark.read()
        if marked == self._found:
            return
        if not holds(entries_after, marked):
            raise lost(
                f"does not hold the {marked.n_entries} entries that {self._mark.path.name} "
                "vouches for: it was set back"
            )
        self._found = marked


class _Appender:
    """An open transaction that tracks the position of its last entry."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self.last: Position | None = None

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Entries with a higher number, in order, as this transaction sees them."""
        for entry in self._appender.entries_after(seq):
            self.last = Position(entry.seq, entry.digest)
            yield entry

    def insert(self, entries: Iterable[Entry]) -> None:
        """Append entries; they count once they are committed and marked."""
        added = list(entries)
        self._appender.insert(added)
        if added:
            self.last = Position(added[-1].seq, added[-1].digest)


def holds(entries_after: EntriesAfter, position: Position) -> bool:
    """Whether a ledger contains a position: its digest stands for all the entries before it."""
    if not position.n_entries:
        return position.digest == GENESIS
    entry = next(entries_after(position.n_entries - 1), None)
    return entry is not None and entry.seq == position.n_entries and entry.digest == position.digest
