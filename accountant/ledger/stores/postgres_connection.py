"""One connection to a ledger's PostgreSQL, renewed when it is lost; and what its errors mean.

A connection is checked whenever it is made: the server must keep what it commits, and it must still
be the ledger with which this process began. A server's error text may name hosts, roles and keys,
so it never reaches an analyst: `reason` replaces it by a text of ours, chosen by the error's code.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg
from psycopg.conninfo import make_conninfo

from accountant.ledger.stores.postgres_location import PostgresLocation, password
from cube.refusals import CannotStart, LedgerUnavailable

Result = TypeVar("Result")

# By the error code, or by its first two characters, which are its class.
_REASONS = {
    "55P03": "another process has been writing to it for too long",
    "25P03": "this process took too long to write to it",
    "25006": "its database is read-only",
    "42501": "its database does not let this server write to it",
    "23505": "something else than Tacit has written to it",
    "P0001": "its database refuses the change",
    "53": "its database has no room or no resources left",
    "57": "its database is stopping or starting",
    "58": "its database cannot use its disk",
}


class Link:
    """One connection, for one thread at a time.

    Parameters
    ----------
    location : PostgresLocation
    check : callable
        Is called with each new connection, and raises if it may not be used.
    """

    def __init__(
        self, location: PostgresLocation, check: Callable[[psycopg.Connection], None]
    ) -> None:
        self._location = location
        self._check = check
        self._connection: psycopg.Connection | None = None

    def run(self, act: Callable[[psycopg.Connection], Result]) -> Result:
        """The result of `act`, which is repeated once if the connection turns out to be lost.

        So `act` must be idempotent.
        """
        if self._connection is not None:
            try:
                return act(self._connection)
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise
                self.drop()
        if self._connection is None:
            self._connection = self._connected()
        return act(self._connection)

    def drop(self) -> None:
        """Close the connection; the next one will be new."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> psycopg.Connection:
        connection = connect(self._location)
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_lost(self, error: psycopg.Error) -> bool:
        is_closed = self._connection is None or self._connection.closed
        return is_closed or (error.sqlstate or "").startswith("57P")  # told to go away


def connect(location: PostgresLocation) -> psycopg.Connection:
    """A connection on which every statement is a transaction, unless BEGIN says otherwise."""
    address = make_conninfo(
        **dict(location.parameters),
        **password(),
        application_name="tacit",
        client_encoding="UTF8",
    )
    return psycopg.connect(address, autocommit=True, prepare_threshold=None)


def reason(error: psycopg.Error) -> str:
    """Why the database refused, in a text that every caller may see."""
    code = error.sqlstate
    if code is None:
        is_link = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return f"its database {'cannot be reached' if is_link else 'cannot store the entry'}"
    known = _REASONS.get(code) or _REASONS.get(code[:2])
    return known or f"its database says {code}"


@contextlib.contextmanager
def explained_at_start(name: str) -> Iterator[None]:
    """Errors while a ledger is opened are for its owner: with the server's own text."""
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        raise CannotStart(
            f"The ledger {name} cannot be used: {text}.",
            hint="See that its server runs, and that this one may use it.",
        ) from None
    except LedgerUnavailable as error:
        raise CannotStart(error.message, hint=error.hint) from None
