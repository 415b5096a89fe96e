"""The ledger: everything that was ever charged and measured, durable and append-only.

One file serves all tables of a process, and one process at a time writes it. Opening checks the
database, the chain of digests and that every entry follows from those before it; what does not
check out is refused, never repaired. `verify` is the same check for an auditor, read-only, also
beside a running server.

The chain shows any change within it. It cannot show that entries at its end are missing: whoever
must be able to prove that keeps the last digest, which `verify` reports, somewhere else.

Proof: proofs/gate.md, "The history".
"""

import datetime as dt
import json
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Self

from accountant import storage
from accountant.entries import GENESIS, Body, Entry, TableOpened, chained_digest, read, write
from accountant.replay import TableHistory
from cube.measurement import UNITS_PER_EPSILON


@dataclass(frozen=True, slots=True)
class TableReport:
    """What the ledger says of one table.

    `spent` is what was charged; `recomputed` is what the rows cost when they are added up afresh,
    never more than `spent` where it is `exact` (otherwise both are proved upper bounds).
    """

    table: str
    budget: Fraction
    spent: Fraction
    recomputed: Fraction
    exact: bool
    n_measurements: int
    n_pending: int


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """The result of an audit.

    Parameters
    ----------
    n_entries : int
        How many entries were found good, from the first on.
    head : str
        The digest of the last good entry.
    tables : tuple of TableReport
        What the good entries add up to.
    problem : str, optional
        What is wrong with the first bad entry.
    """

    n_entries: int
    head: str
    tables: tuple[TableReport, ...]
    problem: str | None


@dataclass(slots=True)
class _Replay:
    """Entries read so far, all good until `problem` is set."""

    histories: dict[str, TableHistory] = field(default_factory=dict)
    n_entries: int = 0
    head: str = GENESIS
    problem: str | None = None

    def read(self, entries: Iterable[Entry]) -> Self:
        """Take in entries up to the first that is bad."""
        place = f"entry {self.n_entries + 1}"
        try:
            for entry in entries:
                self._take(entry)
                place = f"entry {self.n_entries + 1}"
            for table, history in self.histories.items():
                place = f"table {table}"
                history.check_cost()
        except (ValueError, KeyError, TypeError, IndexError, ArithmeticError) as error:
            self.problem = f"{place}: {type(error).__name__}: {error}"
        return self

    def _take(self, entry: Entry) -> None:
        if entry.seq != self.n_entries + 1:
            raise ValueError(f"found number {entry.seq} in its place")
        if not entry.follows(self.head):
            raise ValueError("its digest does not match its content and the entries before it")
        before = self.histories.get(entry.table, TableHistory())
        body = read(entry.kind, json.loads(entry.body))
        self.histories[entry.table] = before.after(entry.seq, body)
        self.n_entries, self.head = entry.seq, entry.digest


class Ledger:
    """A ledger held open by this process. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # one name for one file, or the lock would not mean much
        self._mutex = threading.Lock()
        self._lock = storage.lock(self.path)
        try:
            self._connection = storage.connect(self.path)
            self._replay = self._replayed()
            may_create = self._replay.n_entries == 0
            self.key = storage.fingerprint_key(self.path, may_create=may_create)
        except BaseException:
            self.close()
            raise
        self._is_sound = True

    def close(self) -> None:
        """Let go of the files. Closing twice does no harm."""
        with self._mutex:
            self._is_sound = False
            if "_connection" in self.__dict__:
                self._connection.close()
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def history(self, table: str) -> TableHistory:
        """What the entries about `table` add up to now."""
        return self._replay.histories.get(table, TableHistory())

    def openings(self) -> dict[str, TableOpened]:
        """How each table began, by its name."""
        histories = self._replay.histories.items()
        return {table: one.opened for table, one in histories if one.opened is not None}

    def append(self, table: str, body: Body) -> int:
        """Make an entry durable and return its number.

        Raises
        ------
        ValueError
            If the entry cannot follow what the ledger says; nothing was written.
        RuntimeError
            If an earlier entry failed to be written, or the ledger is closed.
        """
        with self._mutex:
            if not self._is_sound:
                raise RuntimeError("the ledger cannot be written any more; restart the server")
            seq = self._replay.n_entries + 1
            history = self.history(table).after(seq, body)
            entry = self._entry(seq, table, body)
            self._insert(entry)
            self._replay.histories[table] = history
            self._replay.n_entries, self._replay.head = seq, entry.digest
            return seq

    def _replayed(self) -> _Replay:
        replay = _Replay().read(storage.entries(self._connection, self.path))
        if replay.problem is not None:
            raise storage.unreadable(self.path, replay.problem)
        return replay

    def _entry(self, seq: int, table: str, body: Body) -> Entry:
        at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        kind, text = write(body)
        digest = chained_digest(self._replay.head, (seq, at, kind, table, text))
        return Entry(seq, at, kind, table, text, digest)

    def _insert(self, entry: Entry) -> None:
        # Unless the commit is known to have succeeded, nobody knows what is on the disk: only
        # opening the ledger again can tell.
        self._is_sound = False
        row = (entry.seq, entry.at, entry.kind, entry.table, entry.body, entry.digest)
        self._connection.execute(storage.INSERT, row)
        self._is_sound = True


def verify(path: Path) -> LedgerReport:
    """Check a ledger from its first entry to its last, or to the first that is bad.

    Raises
    ------
    LedgerCorrupt
        If `path` is no ledger database, or its pages are damaged.
    """
    with storage.reading(path) as connection:
        replay = _Replay().read(storage.entries(connection, path))
    tables = tuple(_report(table, history) for table, history in sorted(replay.histories.items()))
    return LedgerReport(replay.n_entries, replay.head, tables, replay.problem)


def _report(table: str, history: TableHistory) -> TableReport:
    found = history.cost.table_cost()
    return TableReport(
        table=table,
        budget=history.budget,
        spent=Fraction(history.units_spent, UNITS_PER_EPSILON),
        recomputed=Fraction(found.units, UNITS_PER_EPSILON),
        exact=found.exact,
        n_measurements=len(history.measurements),
        n_pending=len(history.pending),
    )
