"""What a file of counts remembers beside its tables: the order of answers, and how little of it.

While a collection is open, the order in which its last answers came can be read in two places. A
page has its tokens where they were put down, one below the other as they came: only the list of
places at its beginning is sorted. And the WAL has one commit behind the other. The WAL is emptied
whenever it has grown by `N_WAL_BYTES`; once a collection is closed, the whole file is laid out
anew, in the order of digests.

Neither changes what is counted, and a failure of either loses nothing. What blocks of the disk hold
that are free again is not this module's business.
"""

import contextlib
import sqlite3
import time
from enum import Enum
from pathlib import Path
from typing import Final

from proxy.collections.count_file import BUSY_SECONDS, N_WAL_BYTES

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
    """The WAL of a file, kept short by one of the processes that write it.

    Parameters
    ----------
    connection : sqlite3.Connection
    path : Path
        Of the file.
    """

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
