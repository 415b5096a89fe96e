"""The counts of collections, in one SQLite file: durable before an answer is acknowledged.

Of a collection there is, for each combination, how many answers counted at each place of its
channel's output, and the set of spent tokens, as keyed digests. No answer is here, nor who gave it,
nor when. The order of the last answers is in the file and its WAL until a collection is closed and
both are cleared of it (`traces`); docs/threat_model.md says what follows.

Many answers share one sync to the disk, and those that do are written together or not at all. A
token counts once, whatever comes with it the second time, so that whoever got no acknowledgement
sends the same again.

Who only reads has a connection of their own, and does not wait behind a commit, or while the file
is laid out anew.

Nothing here knows a campaign, the ledger, or what a token looks like.
"""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.group_commit import GroupCommit
from cube.pace import waiting
from cube.refusals import StoreUnavailable
from proxy.collections.count_file import opened_counts, reading_counts
from proxy.collections.counts import CHUNK, COUNT, Counts, counts_in
from proxy.collections.traces import CLOSED, Wal, forget_order, left_to_forget
from proxy.monitoring.logs import write_log

Places: TypeAlias = Sequence[tuple[int, Sequence[int]]]  # of each combination: where it counts

HARMLESS: Final = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_LOCKED")


class Outcome(Enum):
    """What became of an answer."""

    COUNTED = "counted"
    COUNTED_BEFORE = "counted before"
    CLOSED = "closed"
    FULL = "full"


@dataclass(slots=True, eq=False, repr=False)
class _Arriving:
    """One answer that a thread waits for; then what became of it, or why that is not known."""

    collection: str
    token: bytes
    places: Places
    n_respondents_max: int
    is_done: bool = False
    outcome: Outcome | None = None
    error: Exception | None = None


class CountStore:
    """A file of counts; several processes may have it open. Thread-safe.

    Parameters
    ----------
    path : Path
        Created if there is no file.

    Raises
    ------
    CannotStart
        If it is no such file, is damaged, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._is_lost = False
        self._lock = threading.Lock()
        self._connection = opened_counts(self.path)
        self._wal = Wal(self._connection, self.path)
        self._reading_lock = threading.Lock()
        self._reading = reading_counts(self.path)
        self._waiting = GroupCommit(self._write)

    def begin(self, collection: str) -> None:
        """Have counts of a collection, all 0, unless there are some."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO collections (name, n_respondents, is_closed)"
                " VALUES (?, 0, 0)",
                (collection,),
            )

    def count(
        self, collection: str, token: bytes, places: Places, *, n_respondents_max: int
    ) -> Outcome:
        """Count an answer once for its token; what this returns is durable.

        Raises
        ------
        StoreUnavailable
            If it could not be written. The same may be sent again.
        """
        arriving = _Arriving(collection, token, places, n_respondents_max)
        with waiting(is_first=True):  # others of its caller's calls come to share the sync
            self._waiting.deal_with(arriving)
        if arriving.error is not None:
            raise arriving.error
        if arriving.outcome is None:
            raise _unavailable("no reason is known")
        return arriving.outcome

    def why_not(self, collection: str, token: bytes, *, n_respondents_max: int) -> Outcome | None:
        """Why an answer would not be counted now; None if it would be, or was counted before."""
        with self._at_one_moment() as reading:
            number, n_respondents, is_closed = _about(reading, collection)
            if not is_closed and n_respondents < n_respondents_max:
                return None
            if _is_spent(reading, number, token):
                return None
            return Outcome.CLOSED if is_closed else Outcome.FULL

    def close_collection(self, collection: str) -> bool:
        """Count no further answer to a collection, from now on; whether it was open until now."""
        with self._writing() as connection:
            changed = connection.execute(
                "UPDATE collections SET is_closed = ? WHERE name = ? AND is_closed = 0",
                (CLOSED, collection),
            )
            return changed.rowcount > 0

    @property
    def left_to_forget(self) -> frozenset[int]:
        """Closed collections of whose answers the file may still have the order."""
        with self._at_one_moment() as reading:
            return left_to_forget(reading)

    def forget_order(self) -> bool:
        """Leave nothing of the order in which closed collections were answered; whether it is done.

        It takes a moment, and room for the file again. Where it cannot be done it is noted in the
        log, and done with the next call.
        """
        with self._lock, self._explained():
            trouble = forget_order(self._connection)
        if trouble is not None:
            write_log(logging.WARNING, "order_not_forgotten", code=trouble)
        return trouble is None

    def counts(self, collection: str) -> Counts:
        """The counts of a collection."""
        with self._at_one_moment() as reading:
            number, n_respondents, _ = _about(reading, collection)
            n_answers = _answered(reading, number)
            rows = reading.execute(
                "SELECT combination, chunk, counts FROM counts WHERE collection = ?", (number,)
            )
            return Counts.read(n_respondents, n_answers, rows)

    def answered(self, collection: str) -> tuple[int, dict[int, int]]:
        """How many answered, and how many answers each combination has, if any."""
        with self._at_one_moment() as reading:
            number, n_respondents, _ = _about(reading, collection)
            return n_respondents, _answered(reading, number)

    def n_respondents(self, collection: str) -> int:
        """How many answered."""
        with self._at_one_moment() as reading:
            return _about(reading, collection)[1]

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._reading_lock:
            self._reading.close()  # the last to close empties the WAL, which a reader may not
        with self._lock:
            with contextlib.suppress(sqlite3.Error):  # closed before, or the disk is in trouble
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._connection.close()

    def _write(self, batch: Sequence[_Arriving]) -> None:
        """Count all answers that wait, in one transaction."""
        outcomes: list[Outcome | Exception] = []
        try:
            with self._writing() as connection:
                counting = _Counting(connection)
                for one in batch:
                    try:
                        outcomes.append(counting.take(one))
                    except LookupError:
                        outcomes.append(_unavailable("the collection has no counts"))
                counting.write()
            with self._lock:
                self._wal.shorten()
        except BaseException as error:  # raised again in the thread of each waiting answer
            for one in batch:
                one.error = _copy(error)
            if not isinstance(error, Exception):
                raise
        else:
            for one, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    one.error = outcome
                else:
                    one.outcome = outcome

    @contextlib.contextmanager
    def _at_one_moment(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees what is committed now, and no more while it is used."""
        with self._reading_lock, self._explained():
            self._reading.execute("BEGIN")
            try:
                yield self._reading
            finally:
                _roll_back(self._reading)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is durable once it is left without an exception."""
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                _roll_back(self._connection)
                raise
            try:
                self._connection.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                if not (getattr(error, "sqlite_errorname", None) or "").startswith(HARMLESS):
                    # Only reading the disk again could show whether the commit is on it, and a
                    # system that failed to write may return data that is not on the disk.
                    self._is_lost = True
                _roll_back(self._connection)
                raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite into refusals; its text says nothing of what is stored."""
        if self._is_lost:
            raise _unavailable(
                "writing failed, and what is on the disk is not known until a restart"
            )
        try:
            yield
        except sqlite3.Error as error:
            raise _unavailable(str(error)) from None


@dataclass(slots=True, repr=False)
class _Counting:
    """One transaction: answers are added up first, and each chunk is written once."""

    connection: sqlite3.Connection
    _numbers: dict[str, int] = field(default_factory=dict)
    _is_open: dict[int, bool] = field(default_factory=dict)
    _n_respondents: dict[int, int] = field(default_factory=dict)
    _n_answers: dict[tuple[int, int], int] = field(default_factory=dict)
    _more: dict[tuple[int, int, int], NDArray[np.int64]] = field(default_factory=dict)

    def take(self, arriving: _Arriving) -> Outcome:
        """Count one answer, if it is to be counted; LookupError for an unknown collection."""
        number = self._known(arriving.collection)
        if _is_spent(self.connection, number, arriving.token):
            return Outcome.COUNTED_BEFORE
        if not self._is_open[number]:
            return Outcome.CLOSED
        if self._n_respondents[number] >= arriving.n_respondents_max:
            return Outcome.FULL
        self.connection.execute(
            "INSERT INTO spent (collection, token) VALUES (?, ?)", (number, arriving.token)
        )
        self._n_respondents[number] += 1
        for combination, places in arriving.places:
            of = number, combination
            self._n_answers[of] = self._n_answers.get(of, 0) + 1
            for place in places:
                key = *of, place // CHUNK
                if key not in self._more:
                    self._more[key] = np.zeros(CHUNK, dtype=np.int64)
                self._more[key][place % CHUNK] += 1
        return Outcome.COUNTED

    def write(self) -> None:
        """Write what was added up."""
        self.connection.executemany(
            "UPDATE collections SET n_respondents = ? WHERE id = ?",
            [(n, number) for number, n in self._n_respondents.items()],
        )
        self.connection.executemany(
            "INSERT INTO answered (collection, combination, n) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET n = n + excluded.n",
            [(*of, n) for of, n in self._n_answers.items()],
        )
        for key, more in self._more.items():
            found = self.connection.execute(
                "SELECT counts FROM counts WHERE collection = ? AND combination = ? AND chunk = ?",
                key,
            ).fetchone()
            counts = more if found is None else more + counts_in(found[0])
            self.connection.execute(
                "INSERT OR REPLACE INTO counts (collection, combination, chunk, counts)"
                " VALUES (?, ?, ?, ?)",
                (*key, counts.astype(COUNT).tobytes()),
            )

    def _known(self, collection: str) -> int:
        if collection not in self._numbers:
            number, n_respondents, is_closed = _about(self.connection, collection)
            self._numbers[collection] = number
            self._n_respondents[number] = n_respondents
            self._is_open[number] = not is_closed
        return self._numbers[collection]


def _roll_back(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(sqlite3.DatabaseError):  # on some errors SQLite has done it
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _about(connection: sqlite3.Connection, collection: str) -> tuple[int, int, bool]:
    found = connection.execute(
        "SELECT id, n_respondents, is_closed FROM collections WHERE name = ?", (collection,)
    ).fetchone()
    if found is None:
        raise LookupError("a collection without counts")
    return int(found[0]), int(found[1]), bool(found[2])


def _is_spent(connection: sqlite3.Connection, number: int, token: bytes) -> bool:
    row = number, token
    found = connection.execute("SELECT 1 FROM spent WHERE collection = ? AND token = ?", row)
    return found.fetchone() is not None


def _answered(connection: sqlite3.Connection, number: int) -> dict[int, int]:
    found = connection.execute(
        "SELECT combination, n FROM answered WHERE collection = ?", (number,)
    )
    return dict(found.fetchall())


def _unavailable(why: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"Answers cannot be kept just now: {why}.",
        hint="Nothing is lost: send the same answer with the same token again later.",
    )


def _copy(error: BaseException) -> Exception:
    """A separate exception for each thread that raises it."""
    if isinstance(error, StoreUnavailable):
        return StoreUnavailable(error.message, hint=error.hint)
    return RuntimeError(f"an answer could not be counted ({type(error).__name__})")
