"""The rows of a table that does not grow: those of the generation that its ledger has come to.

A snapshot is read from the data once, and known by a keyed digest of its rows. Before anything is
charged or measured, that digest is compared with the ledger's: a server that has not read the data
of a new generation yet, or finds other data, measures nothing. Proof: proofs/generations.md.
"""

import hmac
import threading
from typing import Final

from accountant.ledger.table_history import TableHistory
from accountant.source import Source
from cube.refusals import SourceUnavailable

NOT_YET: Final = "Ask again in a moment: the server reads the table's new data."


class Snapshot:
    """What was read of one table, which is replaced when its data is. Thread-safe.

    Parameters
    ----------
    table : str
    source : Source
    key : bytes
        The ledger's, of the digests.
    rows_fingerprint : str, optional
        The source's digest, if it is known already.
    """

    def __init__(
        self, table: str, source: Source, key: bytes, rows_fingerprint: str | None = None
    ) -> None:
        self._table = table
        self._key = key
        self._lock = threading.Lock()
        self._read: tuple[Source, str | None] = source, rows_fingerprint

    def replace(self, source: Source) -> None:
        """Read from another snapshot from now on."""
        found = source.rows_fingerprint(self._key)
        with self._lock:
            self._read = source, found

    def is_of(self, history: TableHistory) -> bool:
        """Whether these are the rows of a history's present generation."""
        known = history.rows_fingerprint
        return known is None or hmac.compare_digest(known, self._known()[1])

    def rows(self, history: TableHistory) -> Source:
        """The rows of a history's present generation.

        Raises
        ------
        SourceUnavailable
            If they were not read yet.
        """
        source, found = self._known()
        known = history.rows_fingerprint
        if known is not None and not hmac.compare_digest(known, found):
            raise SourceUnavailable(
                f"The data of {self._table} was replaced, and is not read yet.", hint=NOT_YET
            )
        return source

    def _known(self) -> tuple[Source, str]:
        """What is read, and its digest, which is computed when it is first asked for."""
        with self._lock:
            source, found = self._read
            if found is None:
                found = source.rows_fingerprint(self._key)
                self._read = source, found
            return source, found
