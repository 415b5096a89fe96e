"""How the rows of a private table are opened: in memory, in an extract, or where they are.

They are read from their location, into memory or into a file that may be there already; or they
stay there, and the engine that has them counts them. It decides nothing about the rows: whether
they are those that a ledger knows is for the gate.

A table that grows is read anew whenever its horizon moves, from its files, table or view. Each
reading is an immutable snapshot of the rows up to one horizon (duckdb_source.py); whether they are
still what they were is for the gate to say. Nothing here keeps an earlier one.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from accountant import Source
from accountant.gate import RemoteGates
from cube.encoding import canonical_json
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract_file import ExtractPlace, make_extract, open_extract
from proxy.sources.holders import GatesOfHolders, GrowingGates
from proxy.sources.location import (
    HeldTable,
    Location,
    PostgresRows,
    PrivateView,
    SparkTable,
    TableLocation,
)
from proxy.sources.postgres_rows import conninfo
from proxy.sources.pushdown import Engine, Postgres, PushedDownSource, Spark


class Extracted(Enum):
    """What is done with an extract that is there already."""

    OPENED = "opened"  # if it is what it has to be
    REPLACED = "replaced"  # by the rows as they are in the data now
    LEFT = "left"  # and the rows of the data are read beside it


def open_rows(  # noqa: PLR0913, PLR0917 - what is read, and how it is kept
    schema: Schema,
    location: Location,
    read: RowsRead,
    place: ExtractPlace | None,
    known_rows: str = "",
    extracted: Extracted = Extracted.OPENED,
) -> DuckDbSource:
    """The rows of a table.

    Parameters
    ----------
    place : ExtractPlace, optional
        Where they are kept; by default in memory.
    known_rows : str
        The digest of the rows that the table must have; an extract with another one is old.
        Empty if no ledger says so yet.
    """
    if place is None:
        return DuckDbSource(schema, location, read)
    if extracted is Extracted.OPENED:
        return open_extract(place, schema, location, read, known_rows)
    is_kept = extracted is Extracted.REPLACED
    return make_extract(place, schema, location, read, known_rows, is_kept=is_kept)


TIMEOUT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class StaysThere:
    """That rows are counted where they are.

    Parameters
    ----------
    timeout : float
        How long one statement may take, in seconds.
    """

    timeout: float = TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of PostgreSQL: its name, and a function for the parameters of a connection."""

    name: str
    label: str
    parameters: Callable[[], str]


def counted_there(
    schema: Schema, table: SparkTable | PostgresTable, stays: StaysThere, key: bytes
) -> PushedDownSource:
    """A table as a source that its engine counts; ConfigurationInvalid if it cannot be."""
    engine: Engine
    if isinstance(table, SparkTable):
        engine = Spark(table, stays.timeout)
    else:
        engine = Postgres(table.name, table.label, stays.timeout, table.parameters)
    return PushedDownSource(schema, engine, key)


class GrowingFile:
    """Where the rows of one growing table are.

    Parameters
    ----------
    schema : Schema
        With the axis along which the table grows.
    key : bytes
        The ledger's, of the digests by which some rows of a unit are kept.
    place : ExtractPlace, optional
        Where the rows of a reading are kept; by default in memory.
    is_new : bool
        Whether an extract that is there is made anew at the first reading; it is at every later
        one.
    """

    def __init__(
        self,
        schema: Schema,
        location: Location,
        key: bytes,
        place: ExtractPlace | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        self._schema = schema
        self._location = location
        self._key = key
        self._place = place
        self._is_new = is_new

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of where it is, and of a view's text: what is in them changes.

        It shows the same data under a second name, which would be given a second budget.
        """
        sql = self._location.sql if isinstance(self._location, PrivateView) else ""
        text = canonical_json(["grows", self._schema.grows, *self._location.where, sql])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def read_up_to(self, horizon: int) -> DuckDbSource:
        """The rows of so many levels, as they are now; ConfigurationInvalid or DataChanged."""
        read = RowsRead(self._key, horizon)
        extracted = Extracted.REPLACED if self._is_new else Extracted.OPENED
        found = open_rows(self._schema, self._location, read, self._place, extracted=extracted)
        self._is_new = True
        return found


def growing_rows(
    schema: Schema,
    location: TableLocation,
    key: bytes,
    place: ExtractPlace | None = None,
    *,
    is_new: bool = False,
) -> GrowingFile | GrowingGates:
    """The rows of a table that grows; see `GrowingFile`."""
    match location:
        case HeldTable():
            return GrowingGates(schema, location)
        case SparkTable():
            raise TypeError("a table in Spark does not grow")
        case _:
            return GrowingFile(schema, location, key, place, is_new=is_new)


def table_rows(  # noqa: PLR0913, PLR0917 - what is read, and how it is kept
    schema: Schema,
    location: TableLocation,
    key: bytes,
    place: ExtractPlace | StaysThere | None,
    known_rows: str,
    extracted: Extracted,
) -> Source | RemoteGates:
    """The rows of a table, to serve them or to look at them; or who has them.

    Parameters
    ----------
    key : bytes
        The ledger's key.
    place : ExtractPlace or StaysThere, optional
        Where they are kept; by default in memory.
    known_rows : str
        The digest of the rows of the generation that a ledger has come to; empty if it has none.
    """
    if isinstance(location, HeldTable):
        return GatesOfHolders(schema, location)
    if isinstance(place, StaysThere):
        return _there(schema, location, place, key)
    if isinstance(location, SparkTable):
        raise TypeError("a table in Spark stays there")
    return open_rows(schema, location, RowsRead(key), place, known_rows, extracted)


def _there(schema: Schema, location: TableLocation, stays: StaysThere, key: bytes) -> Source:
    match location:
        case SparkTable() as table:
            return counted_there(schema, table, stays, key)
        case PostgresRows(table=str() as name) as rows:
            there = PostgresTable(name, rows.label, partial(conninfo, rows))
            return counted_there(schema, there, stays, key)
        case _:
            raise TypeError("only a table of an engine stays where it is")
