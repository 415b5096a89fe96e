"""The counts of collections, in one SQLite file: durable before an answer is acknowledged.

The SQLite file that counts of collections are in: created, opened, and checked.

A file that is damaged, or contradicts itself, is refused and never repaired. What is written there
is `store`'s business.

What a file of counts remembers beside its tables: the order of answers, and how little of it.

While a collection is open, the order in which its last answers came can be read in two places. A
page has its tokens where they were put down, one below the other as they came: only the list of
places at its beginning is sorted. And the WAL has one commit behind the other. The WAL is emptied
whenever it has grown by `N_WAL_BYTES`; once a collection is closed, the whole file is laid out
anew, in the order of digests.

Neither changes what is counted, and a failure of either loses nothing. What blocks of the disk hold
that are free again is not this module's business.

What the answers to one collection are counted as, at one moment, as the file has it.

Counts are kept as they are stored, a chunk at a time, and those without an answer are left out:
a question about a few combinations of a wide campaign does not expand all others.

Of a collection there is, for each combination, how many answers counted at each place of its
channel's output, and the set of spent tokens, as keyed digests. No answer is here, nor who gave it,
nor when. The order of the last answers is in the file and its WAL until a collection is closed and
both are cleared of it (`traces`); docs/threat_model.md says what follows.

Many answers share one sync to the disk, and those that do are written together or not at all. A
token counts once, whatever comes with it the second time, so a respondent without an
acknowledgement sends the same again.

Who only reads has a connection of their own, and does not wait behind a commit, or while the file
is laid out anew.

Nothing here knows a campaign, the ledger, or what a token looks like.
"""

import contextlib
import logging
import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.ledger import GroupCommit
from cube.pace import checkpoint, waiting
from cube.refusals import CannotStart, StoreUnavailable, TacitError
from proxy.monitoring import write_log

APPLICATION_ID: Final = 0x54414343  # "TACC" in the file's header
VERSION: Final = 1
BUSY_SECONDS: Final = 10.0
N_WAL_PAGES: Final = 64  # in the WAL alone; then they are copied into the file itself
N_WAL_BYTES: Final = 2 * N_WAL_PAGES * 4096  # a WAL that is longer all the same is cut: `traces`
SCHEMA: Final = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    (
        "CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
        " n_respondents INTEGER NOT NULL, is_closed INTEGER NOT NULL) STRICT"
    ),
    (
        "CREATE TABLE answered (collection INTEGER, combination INTEGER, n INTEGER NOT NULL,"
        " PRIMARY KEY (collection, combination)) STRICT, WITHOUT ROWID"
    ),
    (
        "CREATE TABLE counts (collection INTEGER, combination INTEGER, chunk INTEGER,"
        " counts BLOB NOT NULL, PRIMARY KEY (collection, combination, chunk)) STRICT, WITHOUT ROWID"
    ),
    # Without row numbers, which would tell the order of answers. A page has what came last where it
    # was put down, though, until the file is laid out anew: see `traces`.
    (
        "CREATE TABLE spent (collection INTEGER, token BLOB,"
        " PRIMARY KEY (collection, token)) STRICT, WITHOUT ROWID"
    ),
    f"PRAGMA user_version = {VERSION}",
)


def opened_counts(path: Path) -> sqlite3.Connection:
    """A connection to a file that is as it should be; created if there is none.

    The connection may be used by several threads, one at a time.

    Raises
    ------
    CannotStart
        If it is no such file, is damaged, or cannot be written.
    """
    try:
        with contextlib.suppress(FileExistsError):  # what is new, its owner alone may read
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise _cannot_open(path, str(error)) from None
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {N_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {N_WAL_BYTES}")
        _create(connection)
        _check(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _cannot_open(path, str(error)) from None
    except TacitError:
        connection.close()
        raise
    return connection


def reading_counts(path: Path) -> sqlite3.Connection:
    """Another connection to a file that `opened_counts` has opened, of who only reads.

    Raises
    ------
    CannotStart
    """
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise _cannot_open(path, str(error)) from None
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")  # a second process waits here, and finds it done
    if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,):
        for statement in SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise CannotStart unless the file is one of counts, whole, and agrees with itself."""
    found = [
        connection.execute(f"PRAGMA {one}").fetchone()[0]
        for one in ("application_id", "user_version", "journal_mode")
    ]
    if found != [APPLICATION_ID, VERSION, "wal"]:
        raise _cannot_open(path, "it is not a file of counts that this version of Tacit can use")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise _cannot_open(path, "it is damaged")
    contradicting = connection.execute(
        "SELECT 1 FROM collections WHERE n_respondents <>"
        " (SELECT COUNT(*) FROM spent WHERE spent.collection = collections.id)"
    ).fetchone()
    if contradicting is not None:
        raise _cannot_open(path, "its number of answers differs from its number of tokens")


def _cannot_open(path: Path, why: str) -> CannotStart:
    return CannotStart(
        f"The answers in {path} cannot be used: {why}.",
        hint="Nothing was changed. Restore the file from a backup, or see that its disk has room.",
    )


PATIENCE_MS: Final = 100  # for a reader in another process, while answers wait
N_TRIES: Final = 20  # while another process empties the WAL, for which SQLite does not wait
# What `is_closed` of a collection says; whatever is not 0 is closed.
CLOSED: Final = 1
FORGOTTEN: Final = 2  # closed, and since then the file was laid out anew


class Emptied(Enum):
    """Whether a WAL was emptied."""

    YES = "yes"
    NO = "a reader still needs it"
    BY_ANOTHER = "another process is at it just now"


class Wal:
    """The WAL of a file, kept short by one of the processes that write it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path.with_name(f"{path.name}-wal")
        self._tried = 0  # how long it was when it last could not be emptied

    def shorten(self) -> None:
        """Empty it, if it has grown long. Waits for readers a moment, and not for long ones."""
        try:
            size = self._path.stat().st_size
        except OSError:
            return
        self._tried = min(self._tried, size)
        if size - self._tried < N_WAL_BYTES:
            return
        with contextlib.suppress(sqlite3.Error):  # the disk is full: what was counted is durable
            self._connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
            try:
                found = emptied_wal(self._connection)
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")
            if found is not Emptied.BY_ANOTHER:  # which is tried again with the next commit
                self._tried = 0 if found is Emptied.YES else size


def emptied_wal(connection: sqlite3.Connection) -> Emptied:
    """Copy the WAL into the file and cut it to nothing, unless others are in the way."""
    is_busy, n_pages, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if not is_busy:
        return Emptied.YES
    return Emptied.BY_ANOTHER if n_pages < 0 else Emptied.NO


def left_to_forget(connection: sqlite3.Connection) -> frozenset[int]:
    """The closed collections since whose closing the file was not laid out anew."""
    found = connection.execute("SELECT id FROM collections WHERE is_closed = ?", (CLOSED,))
    return frozenset(number for (number,) in found.fetchall())


def forget_order(connection: sqlite3.Connection) -> str | None:
    """Lay the file out in the order of keys, if a collection was closed since that was last done.

    Returns
    -------
    str, optional
        Why it could not be done, as SQLite names it. Then nothing has changed, and it may be tried
        again.
    """
    try:
        waiting = left_to_forget(connection)
        if not waiting:
            return None
        connection.execute("VACUUM")
        n_tries, found = 1, emptied_wal(connection)
        while found is Emptied.BY_ANOTHER and n_tries < N_TRIES:
            time.sleep(PATIENCE_MS / 1000)
            n_tries, found = n_tries + 1, emptied_wal(connection)
        if found is not Emptied.YES:
            return "SQLITE_BUSY"
        # These alone: another process may have closed one meanwhile.
        connection.executemany(
            "UPDATE collections SET is_closed = ? WHERE id = ?",
            [(FORGOTTEN, number) for number in waiting],
        )
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorname", None) or type(error).__name__
    return None


CHUNK: Final = 64  # counts that are read and written together: small enough to stay in their page
COUNT: Final = np.dtype("<i8")


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """The counts of one collection.

    Parameters
    ----------
    n_answers : mapping of int to int
        By the place of a combination; those without answers are left out.
    chunks : mapping of int to mapping of int to bytes
        By combination, and then by number: `CHUNK` counts each; those that are all 0 are left out.
    """

    n_respondents: int
    n_answers: Mapping[int, int]
    chunks: Mapping[int, Mapping[int, bytes]]

    @classmethod
    def read(
        cls,
        n_respondents: int,
        n_answers: Mapping[int, int],
        rows: Iterable[tuple[int, int, bytes]],
    ) -> "Counts":
        """Of rows with a combination, the number of a chunk, and its counts."""
        chunks: dict[int, dict[int, bytes]] = {}
        for combination, chunk, counts in rows:
            chunks.setdefault(combination, {})[chunk] = counts
        return cls(n_respondents, n_answers, chunks)

    def of(self, combination: int, n_places: int) -> NDArray[np.int64]:
        """The counts of one combination, at every place of its channel's output.

        A step of a statement's work: of a wide campaign there are thousands.
        """
        checkpoint()
        found = np.zeros(-(-n_places // CHUNK) * CHUNK, dtype=np.int64)
        for chunk, counts in self.chunks.get(combination, {}).items():
            found[chunk * CHUNK : (chunk + 1) * CHUNK] = counts_in(counts)
        return found[:n_places]

    @property
    def digest(self) -> str:
        """The SHA-256 of all counts, by which others are noticed."""
        digest = sha256(self.n_respondents.to_bytes(8, "big"))
        for combination, n_answers in sorted(self.n_answers.items()):
            digest.update(struct.pack(">QQ", combination, n_answers))
        for combination, chunks in sorted(self.chunks.items()):
            for chunk, counts in sorted(chunks.items()):
                digest.update(struct.pack(">QQ", combination, chunk) + counts)
        return digest.hexdigest()


def counts_in(stored: bytes) -> NDArray[np.int64]:
    """The counts of a chunk."""
    return np.frombuffer(stored, dtype=COUNT).astype(np.int64)


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
        """Turn errors of SQLite into refusals; their texts reveal nothing that is stored."""
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
