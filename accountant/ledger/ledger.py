"""The ledger: everything that was ever charged and measured, durable and append-only.

What one process appends is decided on the latest history: inside the store's one write transaction,
after reading what other processes have appended. Requests that arrive while another is being
written are written together (group commit). Readers wait for no writer, and see only what is
durable.

Opening checks the chain of digests, and that every entry follows from those before it; a ledger
that fails the check is refused, never repaired. The audit of a ledger is separate (auditor/), and
shares none of this code.

Proof: proofs/gate.md, "The history"; proofs/ledger.md.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from accountant.ledger.clock import ClockGuard, utc_now
from accountant.ledger.credentials import AccessBook
from accountant.ledger.entries import (
    GENESIS,
    NO_TABLE,
    AccessBody,
    AccessGranted,
    AccessRevoked,
    Body,
    Entry,
    TableBody,
    TableOpened,
    chained_digest,
)
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.group_commit import GroupCommit
from accountant.ledger.ledger_events import EVENTS, ClockCorrected, EventBody, LedgerEnd
from accountant.ledger.stores.mark import Position
from accountant.ledger.stores.marked_store import holds
from accountant.ledger.stores.store import Store, unreadable
from accountant.ledger.table_history import TableHistory
from cube.refusals import LedgerLost, LedgerUnavailable

NOT_AN_ENTRY = (ValueError, KeyError, TypeError, IndexError, ArithmeticError)


@dataclass(slots=True)
class _Replay:
    """The state after a number of entries. A fork continues independently."""

    histories: dict[str, TableHistory] = field(default_factory=dict)
    access: AccessBook = field(default_factory=AccessBook)
    n_entries: int = 0
    head: str = GENESIS
    at: str = ""

    @property
    def end(self) -> LedgerEnd:
        return LedgerEnd(self.n_entries, self.head, self.at)

    def fork(self) -> "_Replay":
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
        return replace(self.histories.get(table, TableHistory()), now=at)

    def _note_read(self, entry: Entry) -> None:
        if entry.table != NO_TABLE:
            history = self.histories[entry.table]
            read = history.read.joined_by([entry.seq])
            self.histories[entry.table] = replace(history, read=read)

    def _check_place(self, entry: Entry) -> None:
        if entry.seq != self.n_entries + 1:
            raise ValueError(f"found in the place of entry {self.n_entries + 1}")
        if not entry.follows(self.head):
            raise ValueError("its digest does not match its content and the entries before it")

    def _take(self, entry: Entry, body: Body) -> None:
        if entry.at < self.at and not isinstance(body, ClockCorrected):
            raise ValueError("it is older than the entry before")
        if isinstance(body, AccessGranted | AccessRevoked):
            self._take_access(entry, body)
        elif isinstance(body, EVENTS):
            self._take_event(entry, body)
        else:
            if isinstance(body, TableOpened):
                self._check_new_data(entry.table, body)
            before = self.histories.get(entry.table, TableHistory())
            self.histories[entry.table] = before.after(entry.seq, entry.at, body)
        self.n_entries, self.head, self.at = entry.seq, entry.digest, entry.at

    def _take_access(self, entry: Entry, body: AccessBody) -> None:
        if entry.table != NO_TABLE:
            raise ValueError("an entry about access must be about no table")
        match body:
            case AccessGranted():
                self.access = self.access.granted(body.credential)
            case AccessRevoked():
                self.access = self.access.without(body.credential_id)

    def _take_event(self, entry: Entry, body: EventBody) -> None:
        if entry.table != NO_TABLE:
            raise ValueError("an entry about the ledger itself must be about no table")
        body.check_follows(self.end)
        if isinstance(body, ClockCorrected):
            for table, history in self.histories.items():
                self.histories[table] = history.at_corrected(entry.at)

    def _check_new_data(self, table: str, opened: TableOpened) -> None:
        if table == NO_TABLE:
            raise ValueError("a table without a name")
        for known, history in self.histories.items():
            same = history.opened and history.opened.data_fingerprint == opened.data_fingerprint
            if same and known != table:
                raise ValueError(f"the data of {table} is known as {known}")


@dataclass(slots=True, eq=False)
class _Request:
    """Something to append, decided on the latest history; then its number, or the failure."""

    table: str
    build: Callable[["_Replay", str], Body | None]
    stamp: Callable[[str, str], str] | None = None  # gives its time; None for the guard's
    is_done: bool = False
    seq: int | None = None
    error: Exception | None = None


class Ledger:
    """A ledger held open by this process, and perhaps by others. Thread-safe.

    Parameters
    ----------
    store : Store
        Where its entries are stored; closed with the ledger.
    key : bytes
        The key of its data fingerprints.
    clock : callable, optional
        The time as UTC text. For tests of windows; an entry is never older than the one before.
    guard : ClockGuard, optional
        Decides how far ahead the clock may be.
    """

    def __init__(
        self,
        store: Store,
        key: bytes,
        clock: Callable[[], str] | None = None,
        guard: ClockGuard | None = None,
    ) -> None:
        self._store = store
        self.key = key
        self._clock = utc_now if clock is None else clock
        self._guard = ClockGuard() if guard is None else guard
        self._waiting = GroupCommit(self._write)
        self._writing = threading.Lock()
        self._advancing = (
            threading.Lock()
        )  # guards what is known; never held while waiting for a disk
        self._is_writable = True
        self._given_up: str | None = None
        try:
            self._replay = _Replay().read(store.entries_after(0))
            self._guard.note(self._replay.at)
            for table, history in self._replay.histories.items():
                self._check_cost(table, history)
        except ValueError as error:
            store.close()
            raise unreadable(store.name, error) from None
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Close the store. Closing twice does no harm."""
        with self._writing:
            self._is_writable = False
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def history(self, table: str) -> TableHistory:
        """The history of `table`, from the entries that this process has read."""
        return self._replay.histories.get(table, TableHistory())

    def openings(self) -> dict[str, TableOpened]:
        """The opening entry of each table, by its name."""
        histories = self._replay.histories.items()
        return {table: one.opened for table, one in histories if one.opened is not None}

    @property
    def access(self) -> AccessBook:
        """Every credential and its state."""
        return self._replay.access

    @property
    def position(self) -> tuple[int, str]:
        """The number of entries that this process has read, and the digest of the last."""
        replay = self._replay
        return replay.n_entries, replay.head

    @property
    def last_at(self) -> str:
        """The time of the last entry that this process has read; empty if there is none."""
        return self._replay.at

    @property
    def is_writable(self) -> bool:
        """Whether the last attempt to write succeeded."""
        return self._is_writable

    def now(self) -> str:
        """The time of an entry that would be made now."""
        return max(self._clock(), self._replay.at)

    def check_clock(self) -> None:
        """Raise ClockDoubtful if an entry made now would be refused for its time."""
        self._guard.stamp(self._clock(), self._replay.at)

    def holds(self, position: Position) -> bool:
        """Whether the durable ledger holds all the entries up to a position."""
        return holds(self._store.entries_after, position)

    def give_up(self, why: str) -> LedgerLost:
        """Stop writing, because something shows that the ledger has lost or changed entries."""
        self._given_up = why
        return self._lost(why)

    def entries(self) -> Iterator[Entry]:
        """Every durable entry, in order."""
        return self._store.entries_after(0)

    def append(self, table: str, build: Callable[[TableHistory], TableBody | None]) -> int | None:
        """Make an entry about a table durable and return its number.

        Parameters
        ----------
        table : str
        build : callable
            Makes the entry's body from the latest history, inside the write transaction; it is
            called once, perhaps in another thread, may not use the ledger, and may raise. None
            for no entry.

        Raises
        ------
        ValueError
            If the entry cannot follow those before it; nothing was written.
        LedgerUnavailable
            If it could not be written. Reading the ledger later shows whether it is there.
        """
        return self._done(_Request(table, lambda replay, at: build(replay.at_now(table, at))))

    def append_access(self, build: Callable[[AccessBook], AccessBody]) -> int | None:
        """The same for an entry about access."""
        return self._done(_Request(NO_TABLE, lambda replay, _at: build(replay.access)))

    def append_event(
        self, build: Callable[[LedgerEnd], EventBody], stamp: Callable[[str, str], str]
    ) -> int | None:
        """The same for an entry about the ledger itself, by its owner; see mending.py."""
        return self._done(_Request(NO_TABLE, lambda replay, _at: build(replay.end), stamp))

    def refresh(self) -> None:
        """Read what other processes have appended.

        Raises
        ------
        LedgerUnavailable
            If the store cannot be read.
        """
        with self._advancing:
            self._replay = self._caught_up(self._store.entries_after)
            self._guard.note(self._replay.at)

    def probe(self) -> None:
        """Test whether the ledger can be written at present; LedgerUnavailable if not."""
        with self._writing:
            try:
                self._undoubted().probe()
            except BaseException:
                self._is_writable = False
                raise
            self._is_writable = True

    def _done(self, request: _Request) -> int | None:
        self._waiting.deal_with(request)
        if request.error is not None:
            raise request.error
        return request.seq

    def _write(self, batch: Sequence[_Request]) -> None:
        """Decide and write all waiting requests, in one transaction."""
        try:
            with self._writing, self._undoubted().writing() as appender:
                replay = self._caught_up(appender.entries_after)
                entries = [entry for one in batch if (entry := self._decided(one, replay))]
                if entries:
                    appender.insert(entries)
        except BaseException as error:  # raised again in the thread of each waiting request
            self._is_writable = False
            for request in batch:
                request.error = request.error or _copy(error)
            if not isinstance(error, Exception):
                raise
        else:
            with self._advancing:
                if replay.n_entries > self._replay.n_entries or entries:
                    self._replay = replay
                    self._guard.note(replay.at)
            self._is_writable = self._is_writable or bool(entries)

    def _decided(self, request: _Request, replay: _Replay) -> Entry | None:
        """The entry of a request, applied to the replay; None if it makes none."""
        try:
            at = (request.stamp or self._guard.stamp)(self._clock(), replay.at)
            body = request.build(replay, at)
            entry = None if body is None else replay.appended(at, request.table, body)
        except Exception as error:  # noqa: BLE001 - it is raised again by who asked
            request.error = error
            return None
        request.seq = None if entry is None else entry.seq
        return entry

    def _caught_up(self, entries_after: Callable[[int], Iterator[Entry]]) -> _Replay:
        """What this process knows, with what others have appended since.

        The last known entry is read again: a store without it has lost or changed entries.
        """
        known = self._replay
        entries = entries_after(max(known.n_entries - 1, 0))
        if known.n_entries:
            last = next(entries, None)
            if last is None or last.digest != known.head:
                raise self._lost("does not hold what it held")
        try:
            return known.fork().read(entries)
        except ValueError as error:
            raise self._lost(f"has an entry that does not follow ({error})") from None

    def _undoubted(self) -> Store:
        if self._given_up is not None:
            raise self._lost(self._given_up)
        return self._store

    def _lost(self, why: str) -> LedgerLost:
        self._is_writable = False
        return LedgerLost(
            f"The ledger {why}.",
            hint="The server's owner has to see to it: `tacit audit verify` shows what is wrong.",
        )

    def _check_cost(self, table: str, history: TableHistory) -> None:
        try:
            history.check_cost()
        except ValueError as error:
            raise ValueError(f"table {table}: {error}") from None


def _copy(error: BaseException) -> Exception:
    """A separate exception for each thread that raises it."""
    if isinstance(error, LedgerUnavailable):
        return type(error)(error.message, hint=error.hint)
    return RuntimeError(f"the ledger could not be written ({type(error).__name__})")
