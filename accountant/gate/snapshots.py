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
        self._source = source
        # What the ledger has is compared with a digest made like it, which is made once.
        self._like = {} if rows_fingerprint is None else {rows_fingerprint: rows_fingerprint}

    def replace(self, source: Source, history: TableHistory) -> None:
        """Read from another snapshot from now on, of a history's present generation."""
        known = history.rows_fingerprint or ""
        found = source.rows_fingerprint(self._key, known)
        with self._lock:
            self._source, self._like = source, {known: found}

    def is_of(self, history: TableHistory) -> bool:
        """Whether these are the rows of a history's present generation."""
        known = history.rows_fingerprint
        return known is None or hmac.compare_digest(known, self._like_it(known)[1])

    def rows(self, history: TableHistory) -> Source:
        """The rows of a history's present generation.

        Raises
        ------
        SourceUnavailable
            If they were not read yet.
        """
        known = history.rows_fingerprint
        source, found = self._like_it(known or "")
        if known is not None and not hmac.compare_digest(known, found):
            raise SourceUnavailable(
                f"The data of {self._table} was replaced, and is not read yet.", hint=NOT_YET
            )
        return source

    def _like_it(self, known: str) -> tuple[Source, str]:
        """What is read, and its digest made like a known one, when it is first asked for."""
        with self._lock:
            if known not in self._like:
                self._like[known] = self._source.rows_fingerprint(self._key, known)
            return self._source, self._like[known]
