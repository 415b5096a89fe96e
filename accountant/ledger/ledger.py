"""The ledger: everything that was ever charged and measured, durable and append-only.

What one process appends is decided on the latest history: inside the store's one write transaction,
after reading what other processes have appended. Requests that arrive while another is being
written are written together (group commit). Readers wait for no writer, and see only what is
durable.

Opening checks the chain of digests, and that every entry follows from those before it, or did when
a checkpoint was written; a ledger that fails the check is refused, never repaired. The audit of a
ledger is separate (auditor/), and shares none of this code.

Proof: proofs/gate.md, "The history"; proofs/ledger.md.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from accountant.ledger.checkpoint import Checkpoint
from accountant.ledger.clock import ClockGuard, utc_now
from accountant.ledger.collections import CollectionBody, CollectionBook
from accountant.ledger.credentials import AccessBook
from accountant.ledger.entries import (
    NO_TABLE,
    AccessBody,
    Body,
    Entry,
    EventBody,
    LedgerEnd,
    TableBody,
)
from accountant.ledger.group_commit import GroupCommit
from accountant.ledger.history import Replay, TableHistory
from accountant.ledger.stores import Position, Store, holds, unreadable
from accountant.ledger.streams import StreamBody, StreamBook
from cube.refusals import LedgerLost, LedgerUnavailable
from cube.runtime import uncollected


@dataclass(slots=True, eq=False)
class _Request:
    """Something to append, decided on the latest history; then its number, or the failure."""

    table: str
    build: Callable[["Replay", str], Body | None]
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
    checkpoint : Checkpoint, optional
        A checkpoint to take the state of a long ledger from, if it belongs to this ledger.
    """

    def __init__(
        self,
        store: Store,
        key: bytes,
        clock: Callable[[], str] | None = None,
        guard: ClockGuard | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._store = store
        self.key = key
        self._clock = utc_now if clock is None else clock
        self._guard = ClockGuard() if guard is None else guard
        self._checkpoint = checkpoint
        self._n_kept = 0
        self._waiting = GroupCommit(self._write)
        self._writing = threading.Lock()
        self._advancing = (
            threading.Lock()
        )  # guards what is known; never held while waiting for a disk
        self._is_writable = True
        self._given_up: str | None = None
        try:
            with uncollected():
                if checkpoint is None:
                    self._replay = Replay().read(store.entries_after(0))
                else:
                    self._replay, self._n_kept = checkpoint.read(store.entries_after)
                for table, history in self._replay.histories.items():
                    self._check_cost(table, history)
            self._guard.note(self._replay.at)
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
        return self._replay.history(table)

    def history_now(self, table: str) -> TableHistory:
        """The same, with the present moment as the time at which spending is counted."""
        return replace(self.history(table), now=self.now())

    def shared_budgets(self) -> dict[str, str]:
        """The name of the budget that a table shares with others, by the table's name."""
        histories = self._replay.histories.items()
        return {table: one.shared_budget for table, one in histories if one.shared_budget}

    def tables(self) -> tuple[str, ...]:
        """The names of the tables that were opened."""
        return tuple(self._replay.histories)

    @property
    def access(self) -> AccessBook:
        """Every credential and its state."""
        return self._replay.access

    @property
    def collections(self) -> CollectionBook:
        """Every collection of randomised answers."""
        return self._replay.collections

    @property
    def streams(self) -> StreamBook:
        """Every stream, its epochs and what was released of them."""
        return self._replay.streams

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
        return self.append_each(table, [build])[0]

    def append_each(
        self, table: str, builds: Sequence[Callable[[TableHistory], TableBody | None]]
    ) -> list[int | None]:
        """The same for several entries, one after the other, which are durable together.

        Each is made from the history with those before it.

        Raises
        ------
        ValueError
            If an entry cannot follow those before it; others may have been written.
        LedgerUnavailable
            If nothing could be written.
        """
        requests = [_Request(table, partial(_on_history, table, one)) for one in builds]
        return self._done(*requests)

    def append_access(self, build: Callable[[AccessBook], AccessBody]) -> int | None:
        """The same for an entry about access."""
        return self._done(_Request(NO_TABLE, lambda replay, _at: build(replay.access)))[0]

    def append_collection(
        self, build: Callable[[CollectionBook], CollectionBody | None]
    ) -> int | None:
        """The same for an entry about a collection of randomised answers."""
        return self._done(_Request(NO_TABLE, lambda replay, _at: build(replay.collections)))[0]

    def append_stream(
        self, stream: str, build: Callable[[StreamBook, str], StreamBody | None]
    ) -> int | None:
        """The same for an entry about a stream; `build` is also given the entry's time."""
        return self._done(_Request(stream, lambda replay, at: build(replay.streams, at)))[0]

    def append_event(
        self, build: Callable[[LedgerEnd], EventBody], stamp: Callable[[str, str], str]
    ) -> int | None:
        """The same for an entry about the ledger itself, by its owner; see mending.py."""
        return self._done(_Request(NO_TABLE, lambda replay, _at: build(replay.end), stamp))[0]

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

    def keep_state(self, n_entries_least: int = 1) -> bool:
        """Write the checkpoint anew if there are so many entries more; whether it was written.

        Raises
        ------
        OSError, CannotStart, NotAState
            If it cannot be written. Nothing is lost by it but time at the next start.
        """
        replay = self._replay
        if self._checkpoint is None or replay.n_entries < self._n_kept + n_entries_least:
            return False
        self._n_kept = self._checkpoint.write(replay)
        return True

    def _done(self, *requests: _Request) -> list[int | None]:
        """The numbers of the entries of requests, once they are durable; none if there is none."""
        self._waiting.deal_with(*requests)
        for one in requests:
            if one.error is not None:
                raise one.error
        return [one.seq for one in requests]

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

    def _decided(self, request: _Request, replay: Replay) -> Entry | None:
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

    def _caught_up(self, entries_after: Callable[[int], Iterator[Entry]]) -> Replay:
        """The state that this process knows, with the entries that others have appended since.

        The last known entry is read again: a store without it has lost or changed entries.
        """
        known = self._replay
        entries = entries_after(max(known.n_entries - 1, 0))
        if known.n_entries:
            last = next(entries, None)
            if last is None or last.digest != known.head:
                raise self._lost("no longer holds the entries that it held before")
        try:
            return known.fork().read(entries)
        except ValueError as error:
            raise self._lost(f"has an entry that does not continue it ({error})") from None

    def _undoubted(self) -> Store:
        if self._given_up is not None:
            raise self._lost(self._given_up)
        return self._store

    def _lost(self, why: str) -> LedgerLost:
        self._is_writable = False
        return LedgerLost(
            f"The ledger {why}.",
            hint="The server's owner has to repair the ledger; `tacit audit verify` shows "
            "what is wrong.",
        )

    def _check_cost(self, table: str, history: TableHistory) -> None:
        try:
            history.check_cost()
        except ValueError as error:
            raise ValueError(f"table {table}: {error}") from None


def _on_history(
    table: str, build: Callable[[TableHistory], TableBody | None], replay: Replay, at: str
) -> TableBody | None:
    return build(replay.at_now(table, at))


def _copy(error: BaseException) -> Exception:
    """A separate exception for each thread that raises it."""
    if isinstance(error, LedgerUnavailable):
        return type(error)(error.message, hint=error.hint)
    return RuntimeError(f"the ledger could not be written ({type(error).__name__})")
