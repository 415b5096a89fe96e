"""The rows of a table as its ledger knows them. Rows that were not checked are never handed out.

Of a table that grows, these are the rows up to the ledger's horizon, as they were when closed.
Before anything is charged or measured they were read, and those of each period have the digest that
the ledger has. So a row that is raised finds the exact value that it had, on whichever server, and
nothing is measured of rows that changed. Proof: proofs/growth.md.

Of a table that does not grow, they are those of the generation that its ledger has come to. A
snapshot is read from the data once, and known by a keyed digest of its rows. Before anything is
charged or measured, that digest is compared with the ledger's: a server that has not read the data
of a new generation yet, or finds other data, measures nothing. Proof: proofs/generations.md.
"""

import hmac
import threading
from typing import Final

from accountant.gate.asked import RemoteGates
from accountant.ledger import Period
from accountant.ledger.history import Growth, TableHistory
from accountant.source import GrowingSource, Reaching, ReadRows, Source
from cube.axis import Axis
from cube.horizon import Span, spans
from cube.refusals import SourceUnavailable, TacitError

NOT_NOW: Final = "Ask again later. Meanwhile, queries that the history can answer still work."


class ClosedPeriods:
    """The checked rows of one growing table. Thread-safe.

    Parameters
    ----------
    table : str
    axis : Axis
        The axis along which the table grows.
    source : GrowingSource
    key : bytes
        The ledger's key, with which the digests are made.
    """

    def __init__(self, table: str, axis: Axis, source: GrowingSource, key: bytes) -> None:
        self._table = table
        self._axis = axis
        self._source = source
        self._key = key
        self._lock = threading.Lock()
        self._rows: ReadRows | None = None
        self._n_read = 0  # levels whose rows were read
        self._known: Growth | None = None  # with which the rows were compared
        self._changed: tuple[Period, ...] = ()

    @property
    def changed(self) -> tuple[Period, ...]:
        """Periods whose rows were found changed; for the owner alone."""
        return self._changed

    def rows(self, growth: Growth) -> ReadRows:
        """The rows as far as the ledger says.

        Raises
        ------
        SourceUnavailable
            If they cannot be read, or are not those that the ledger began with.
        """
        with self._lock:
            if self._known == growth and self._changed:
                raise self._unavailable()  # reading them again and again would tell nothing new
            rows = self._rows
            if rows is not None and self._known == growth:
                return rows
            is_short = rows is None or self._n_read < growth.horizon
            if rows is None or is_short or self._differing(rows, growth):  # changes were accepted
                rows = self._read_up_to(growth.horizon)
            self._check(rows, growth)
            return rows

    def within_reach(self, horizon: int) -> int:
        """So many levels, or as many as there are to be read where the rows are.

        Raises
        ------
        SourceUnavailable
            If that cannot be found out.
        """
        return min(horizon, self._source.reach()) if isinstance(self._source, Reaching) else horizon

    def read_on(self, growth: Growth, horizon: int) -> tuple[Period, ...]:
        """Read anew, and further than the ledger says; the new periods.

        Raises
        ------
        SourceUnavailable
            As `rows`.
        """
        with self._lock:
            rows = self._read_up_to(horizon)
            self._check(rows, growth)
            found = spans(self._axis, growth.horizon, horizon)
            return tuple(self._period(rows, span) for span in found)

    def found(self, growth: Growth) -> tuple[Period, ...]:
        """Read anew, and return all periods of the ledger as they are now.

        Raises
        ------
        SourceUnavailable
            If they cannot be read.
        """
        with self._lock:
            rows = self._read_up_to(growth.horizon)
            return tuple(_now(rows, one, self._key) for one in growth.periods)

    def _read_up_to(self, horizon: int) -> ReadRows:
        """Rows that are still to be checked."""
        self._rows, self._known, self._n_read = None, None, horizon
        try:
            return self._source.read_up_to(horizon)
        except SourceUnavailable:
            raise
        except TacitError as error:
            raise self._unavailable() from error

    def _check(self, rows: ReadRows, growth: Growth) -> None:
        """Keep the rows; SourceUnavailable unless all periods are what they were."""
        self._known = growth
        self._changed = self._differing(rows, growth)
        self._rows = None if self._changed else rows
        if self._changed:
            raise self._unavailable()

    def _differing(self, rows: ReadRows, growth: Growth) -> tuple[Period, ...]:
        """The periods whose rows are not those of the ledger."""
        return tuple(
            one
            for one in growth.periods
            if not hmac.compare_digest(
                _now(rows, one, self._key).rows_fingerprint, one.rows_fingerprint
            )
        )

    def _period(self, rows: ReadRows, span: Span) -> Period:
        """A period that the ledger does not have yet."""
        return Period(*span, rows.period_fingerprint(*span, self._key))

    def _unavailable(self) -> SourceUnavailable:
        return SourceUnavailable(
            f"The data of {self._table} cannot be measured at the moment.", hint=NOT_NOW
        )


def _now(rows: ReadRows, known: Period, key: bytes) -> Period:
    """A period of the ledger as its rows are now, digested as it is there."""
    found = rows.period_fingerprint(known.start, known.end, key, known.rows_fingerprint)
    return Period(known.start, known.end, found)


NOT_YET: Final = "Ask again in a moment, when the server has read the new data."


class Snapshot:
    """The rows read from one table, replaced when its data is replaced. Thread-safe.

    Parameters
    ----------
    table : str
    source : Source
    key : bytes
        The ledger's key, with which the digests are made.
    rows_fingerprint : str, optional
        The source's digest, if it is known already.
    """

    def __init__(
        self,
        table: str,
        source: Source | RemoteGates,
        key: bytes,
        rows_fingerprint: str | None = None,
    ) -> None:
        self._table = table
        self._key = key
        self._lock = threading.Lock()
        self._source = source
        # What the ledger has is compared with a digest made like it, which is made once.
        self._like = {} if rows_fingerprint is None else {rows_fingerprint: rows_fingerprint}

    def replace(self, source: Source | RemoteGates, history: TableHistory) -> None:
        """Read from another snapshot from now on, of a history's present generation."""
        known = history.rows_fingerprint or ""
        found = source.rows_fingerprint(self._key, known)
        with self._lock:
            self._source, self._like = source, {known: found}

    def is_of(self, history: TableHistory) -> bool:
        """Whether these are the rows of a history's present generation."""
        known = history.rows_fingerprint
        return known is None or hmac.compare_digest(known, self._like_it(known)[1])

    def rows(self, history: TableHistory) -> Source | RemoteGates:
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
                f"The data of {self._table} was replaced, and the server has not read "
                "the new data yet.",
                hint=NOT_YET,
            )
        return source

    def _like_it(self, known: str) -> tuple[Source | RemoteGates, str]:
        """The source and its digest, made like a known digest when it is first asked for."""
        with self._lock:
            if known not in self._like:
                self._like[known] = self._source.rows_fingerprint(self._key, known)
            return self._source, self._like[known]
