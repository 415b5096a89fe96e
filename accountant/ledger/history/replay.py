"""The state of a ledger after a number of its entries, and how one more entry changes it.

What an entry does to its table is in table_history.py; here is what concerns several tables: the
chain of digests, access, streams, and budgets that tables share. Nothing here does input or output.
Proof: proofs/gate.md, "The history"; proofs/ledger.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from accountant.ledger.collections import (
    COLLECTION_BODIES,
    CollectionBody,
    CollectionBook,
    CollectionOpened,
)
from accountant.ledger.credentials import AccessBook
from accountant.ledger.entries import (
    EVENTS,
    GENESIS,
    NO_TABLE,
    AccessBody,
    AccessGranted,
    AccessRevoked,
    Body,
    ChangesAccepted,
    ClockCorrected,
    Entry,
    EventBody,
    GenerationBegun,
    LedgerEnd,
    TableBody,
    TableOpened,
    chained_digest,
)
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.history.changed_rows import after_acceptance, with_next_generation
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.streams import STREAM_BODIES, StreamBody, StreamBook
from accountant.ledger.values import successor

_UNOPENED = TableHistory()
NOT_AN_ENTRY = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


@dataclass(slots=True)
class Replay:
    """The state after a number of entries. A fork continues independently."""

    histories: dict[str, TableHistory] = field(default_factory=dict)
    access: AccessBook = field(default_factory=AccessBook)
    n_entries: int = 0
    head: str = GENESIS
    at: str = ""
    collections: CollectionBook = field(default_factory=CollectionBook)
    streams: StreamBook = field(default_factory=StreamBook)

    @property
    def end(self) -> LedgerEnd:
        """The last entry, by its number, digest and time."""
        return LedgerEnd(self.n_entries, self.head, self.at)

    def fork(self) -> "Replay":
        """A copy that continues independently."""
        return replace(self, histories=dict(self.histories))

    def read(self, entries: Iterable[Entry]) -> Self:
        """Apply entries; ValueError, KeyError or TypeError if one cannot follow."""
        for entry in entries:
            try:
                self._check_place(entry)
                self._take(entry, read_text(entry.kind, entry.body))
                self._note_read(entry)
            except NOT_AN_ENTRY as error:
                raise ValueError(f"entry {entry.seq}: {type(error).__name__}: {error}") from error
        return self

    def appended(self, at: str, table: str, body: Body) -> Entry:
        """Make the entry for `body`, and apply it."""
        seq = self.n_entries + 1
        kind, text = write(body)
        digest = chained_digest(self.head, (seq, at, kind, table, text))
        entry = Entry(seq, at, kind, table, text, digest)
        self._take(entry, body)
        return entry

    def at_now(self, table: str, at: str) -> TableHistory:
        """The history of a table at a moment."""
        return successor(self.history(table), now=at)

    def history(self, table: str) -> TableHistory:
        """The history of a table, with what others have spent of a budget that it shares."""
        history = self.histories.get(table, _UNOPENED)
        if not history.shared_budget:
            return history
        sharing = tuple(
            other
            for name, other in self.histories.items()
            if name != table and other.shared_budget == history.shared_budget
        )
        return successor(history, sharing=sharing)

    def _note_read(self, entry: Entry) -> None:
        if entry.table in self.histories:
            history = self.histories[entry.table]
            read = history.read.joined_by([entry.seq])
            self.histories[entry.table] = successor(history, read=read)

    def _check_place(self, entry: Entry) -> None:
        if entry.seq != self.n_entries + 1:
            raise ValueError(f"it was found in the place of entry {self.n_entries + 1}")
        if not entry.follows(self.head):
            raise ValueError("its digest does not match its content and the entries before it")

    def _take(self, entry: Entry, body: Body) -> None:
        if entry.at < self.at and not isinstance(body, ClockCorrected):
            raise ValueError("it is older than the entry before")
        if isinstance(body, AccessGranted | AccessRevoked):
            self._take_access(entry, body)
        elif isinstance(body, EVENTS):
            self._take_event(entry, body)
        elif isinstance(body, COLLECTION_BODIES):
            self._take_collection(entry, body)
        elif isinstance(body, STREAM_BODIES):
            self._take_stream(entry, body)
        else:
            after = self._after(entry, body)
            # Kept without the others: what they are now is looked up whenever it is asked for.
            self.histories[entry.table] = successor(after, sharing=()) if after.sharing else after
        self.n_entries, self.head, self.at = entry.seq, entry.digest, entry.at

    def _after(self, entry: Entry, body: TableBody) -> TableHistory:
        """The history of an entry's table after it."""
        before = self.history(entry.table)
        match body:
            case ChangesAccepted():
                return after_acceptance(successor(before, now=entry.at), body)
            case GenerationBegun():
                self._check_new_data(entry.table, body.data_fingerprint, before.shared_budget)
                return with_next_generation(successor(before, now=entry.at), body)
            case TableOpened():
                if entry.table in self.collections.by_name:
                    raise ValueError("the table has the name of a collection")
                self._check_new_data(entry.table, body.data_fingerprint, body.shared_budget)
        return before.after(entry.seq, entry.at, body)

    def _take_access(self, entry: Entry, body: AccessBody) -> None:
        if entry.table != NO_TABLE:
            raise ValueError("an entry about access must not name a table")
        match body:
            case AccessGranted():
                self.access = self.access.granted(body.credential)
            case AccessRevoked():
                self.access = self.access.without(body.credential_id)

    def _take_collection(self, entry: Entry, body: CollectionBody) -> None:
        if entry.table != NO_TABLE:
            raise ValueError("an entry about a collection must not name a table")
        taken = self.histories.keys() | self.streams.streams.keys()
        if isinstance(body, CollectionOpened) and body.name in taken:
            raise ValueError("the collection has the name of a table or a stream")
        self.collections = self.collections.after(body)

    def _take_stream(self, entry: Entry, body: StreamBody) -> None:
        if entry.table == NO_TABLE or entry.table in self.histories:
            raise ValueError("the stream has no name, or has the name of a table")
        if entry.table in self.collections.by_name:
            raise ValueError("the stream has the name of a collection")
        self.streams = self.streams.after(entry.table, entry.at, body)

    def _take_event(self, entry: Entry, body: EventBody) -> None:
        if entry.table != NO_TABLE:
            raise ValueError("an entry about the ledger itself must not name a table")
        body.check_follows(self.end)
        if isinstance(body, ClockCorrected):
            for table, history in self.histories.items():
                self.histories[table] = history.at_corrected(entry.at)

    def _check_new_data(self, table: str, data: str, shared_budget: str) -> None:
        """Refuse data that has spent of another budget, now or in an earlier generation."""
        if table == NO_TABLE:
            raise ValueError("the table has no name")
        if table in self.streams.streams:
            raise ValueError("the table has the name of a stream")
        for known, history in self.histories.items():
            is_shared = shared_budget and shared_budget == history.shared_budget
            if data in history.generations.data and not is_shared and known != table:
                raise ValueError(f"the data of {table} is already recorded under the name {known}")
