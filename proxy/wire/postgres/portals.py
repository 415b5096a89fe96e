"""Prepared statements and portals: what a client keeps under names on its connection.

A portal holds its answer once it has run: it is given in pieces, and never asked for again. A
cursor is a portal that SQL made.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import pyarrow as pa

from planner.sql import Parameters, Statement
from proxy.wire.postgres.backend import Column
from proxy.wire.postgres.bound_values import spread
from proxy.wire.postgres.pg_types import PgType, type_of_arrow
from proxy.wire.postgres.sqlstates import StateError
from proxy.wire.postgres.values import USUAL, TextStyle, rows_of

N_PREPARED_MAX: Final = 1000  # of one connection
N_PORTALS_MAX: Final = 100
KEPT_BYTES_MAX: Final = 4 * 2**20  # names, texts and values of all that a connection keeps
HELD_BYTES_MAX: Final = 32 * 2**20  # of answers that were not taken yet; then none begins
UNNAMED: Final = ""
_NO_ROWS: Final = pa.table({})

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement, read and not run.

    Parameters
    ----------
    statement : Statement, optional
        None if the text holds none.
    names : tuple of str
        The names of its parameters.
    types : tuple of PgType
        Their types.
    places : tuple of PgType
        What each of them stands beside, whatever type the client named.
    schema : pyarrow.Schema, optional
        The columns of its answer; None if it has none.
    """

    sql: str
    statement: Statement | None
    names: tuple[str, ...] = ()
    types: tuple[PgType, ...] = ()
    schema: pa.Schema | None = None
    places: tuple[PgType, ...] = ()


class Portal:
    """A statement with its values, and its answer as far as it was not given yet.

    Parameters
    ----------
    formats : tuple of int
        Formats of the columns, as the client sent them.
    is_held : bool
        Whether it outlives the transaction.
    """

    def __init__(
        self,
        prepared: Prepared,
        values: Parameters = (),
        formats: tuple[int, ...] = (),
        *,
        is_held: bool = False,
    ) -> None:
        self.prepared = prepared
        self.values = values
        self.is_held = is_held
        self.schema = prepared.schema
        self.tag = ""
        self.has_run = False
        self.style = USUAL
        self._formats = formats
        self._rows = _NO_ROWS
        self._place = 0

    def fill(self, rows: pa.Table | None, tag: str, style: TextStyle = USUAL) -> None:
        """Keep the answer of the statement, which has run, and how its values are written."""
        self.has_run, self.tag, self.style = True, tag, style
        if rows is None:
            return
        if self.schema is not None and rows.schema.types != self.schema.types:
            rows = rows.cast(_described(self.schema, rows.schema))  # what was described is sent
        self._rows, self.schema = rows, rows.schema

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows; none if it gives no rows."""
        return () if self.schema is None else columns_of(self.schema, self._formats)

    def passed(self, n_rows: int) -> pa.Table:
        """The next rows, which then are behind."""
        taken = self._rows.slice(self._place, min(n_rows, self.n_left))
        self._place += taken.num_rows
        if not self.n_left:
            self._rows, self._place = self._rows.schema.empty_table(), 0
        return taken

    def next_rows(self, n_rows: int) -> Iterator[tuple[bytes | None, ...]]:
        """The next rows as bytes."""
        return rows_of(self.passed(n_rows), self.columns, self.style)

    @property
    def n_bytes_held(self) -> int:
        """The memory of an answer that was not given to its end."""
        return int(self._rows.nbytes)

    @property
    def n_left(self) -> int:
        """How many rows were not given yet."""
        return int(self._rows.num_rows) - self._place


class Shelf(Generic[Kept]):
    """Things under names, bounded in number and size.

    Parameters
    ----------
    what : str
        What a refusal calls one of them.
    missing, taken : str
        The SQLSTATEs of a name that is not there, and of one that is.
    """

    def __init__(self, what: str, missing: str, taken: str, n_max: int) -> None:
        self._what = what
        self._missing = missing
        self._taken = taken
        self._n_max = n_max
        self._kept: dict[str, Kept] = {}
        self._n_bytes: dict[str, int] = {}

    def put(self, name: str, item: Kept, n_bytes: int) -> None:
        """Keep an item of about that size; without a name, in place of the one without a name."""
        if name != UNNAMED and name in self._kept:
            raise StateError(self._taken, f"There is a {self._what} {name[:64]!a} already.")
        others = sum(self._n_bytes.values()) - self._n_bytes.get(name, 0)
        is_full = name != UNNAMED and len(self._kept) >= self._n_max
        if is_full or others + len(name) + n_bytes > KEPT_BYTES_MAX:
            raise StateError(
                "54000",
                f"This connection keeps too much under the names of {self._what}s.",
                hint="Close those that are not used.",
            )
        self._kept[name] = item
        self._n_bytes[name] = len(name) + n_bytes

    def get(self, name: str) -> Kept:
        """The item under a name."""
        found = self._kept.get(name)
        if found is None:
            raise StateError(self._missing, f"There is no {self._what} {name[:64]!a}.")
        return found

    def discard(self, name: str) -> None:
        """Forget an item; no error if it is not here."""
        self._kept.pop(name, None)
        self._n_bytes.pop(name, None)

    def keep_only(self, keep: "set[str]") -> None:
        """Forget all others."""
        self._kept = {name: item for name, item in self._kept.items() if name in keep}
        self._n_bytes = {name: self._n_bytes[name] for name in self._kept}

    def items(self) -> list[tuple[str, Kept]]:
        """Every name and its item."""
        return list(self._kept.items())


def _described(described: pa.Schema, own: pa.Schema) -> pa.Schema:
    """The columns as they were described; those of no type, which are told as text, as text.

    An interval or a list has no cast to text, and is written as itself.
    """
    fields = []
    for field, own_type in zip(described, own.types, strict=True):
        has_no_cast = pa.types.is_nested(own_type) or pa.types.is_interval(own_type)
        if pa.types.is_null(field.type) or (pa.types.is_string(field.type) and has_no_cast):
            fields.append(field.with_type(own_type if has_no_cast else pa.string()))
        else:
            fields.append(field)
    return pa.schema(fields, described.metadata)


def has_untyped(schema: pa.Schema) -> bool:
    """Whether a column has no type: it shows a parameter, of whose value nothing was known."""
    return any(pa.types.is_null(one) for one in schema.types)


def columns_of(schema: pa.Schema, formats: tuple[int, ...] = ()) -> tuple[Column, ...]:
    """The columns of a result, with the formats that a client asked for."""
    forms = spread(formats, len(schema))
    return tuple(
        Column(field.name, type_of_arrow(field.type), form)
        for field, form in zip(schema, forms, strict=True)
    )
