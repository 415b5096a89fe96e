"""Public tables: small dimension tables that anybody may see, declared beside the private ones.

A public table is a value: its name, its key and its rows as Arrow. Reading it costs nothing, and it
holds nothing private. `sources.public.file` reads it from a file; the planner decides what may be
asked of it, alone or joined with a private table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from cube.axis import NAME_LENGTH_MAX
from planner.domain import PRIVACY_SCHEMA, Columns, PublicRelation

N_ROWS_MAX = 1_000_000  # a private column has at most 2**20 levels, so more keys could not match
N_BYTES_MAX = 256 * 2**20  # all of it stays in memory, beside the private tables
N_COLUMNS_MAX = 1000
Key: TypeAlias = str | tuple[str, ...] | None
"""The column, or the columns in their order, that tell the rows of a table apart."""
RESERVED_NAMES = frozenset((PRIVACY_SCHEMA,))  # the views' own schema

_SQL_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.float64(): "DOUBLE",
    pa.float32(): "FLOAT",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
}
TYPE_NAMES = (*_SQL_TYPES.values(), "DECIMAL")


@dataclass(frozen=True, slots=True, eq=False)
class PublicTable:
    """A table whose rows are public.

    Parameters
    ----------
    name : str
        Its name in SQL.
    key : str or tuple of str, optional
        A column without duplicates and NULLs, in the spelling of `data`; or several columns without
        NULLs, whose combinations are distinct.
    data : pyarrow.Table
        Its rows; each column of a type that `sql_type_of` names.
    """

    name: str
    key: Key
    data: pa.Table

    def relation(self) -> PublicRelation:
        """The table for the planner: with its values, if it has a key to join by."""
        columns = tuple(self.data.column_names)
        values = self.columns() if self.key_columns else {}
        return PublicRelation(self.name, columns, self.key_columns, values, types=self.sql_types)

    def columns(self) -> Columns:
        """Every column's SQL type and values."""
        return {
            name: (str(sql_type_of(self.data.schema.field(name).type)), column.to_pylist())
            for name, column in zip(self.data.column_names, self.data.columns, strict=True)
        }

    def __post_init__(self) -> None:
        if not is_public_name(self.name):
            raise ValueError(f"{self.name!r} cannot be the name of a public table")
        names = self.data.column_names
        if not 1 <= len(names) <= N_COLUMNS_MAX:
            raise ValueError(f"{self.name}: 1 to {N_COLUMNS_MAX} columns are needed")
        if len({name.casefold() for name in names}) != len(names):
            raise ValueError(f"{self.name}: two columns share a name (letter case does not count)")
        for field in self.data.schema:
            if sql_type_of(field.type) is None:
                raise ValueError(f"{self.name}: {field.name} is of a type that SQL has no name for")
        if self.data.num_rows > N_ROWS_MAX or self.data.nbytes > N_BYTES_MAX:
            raise ValueError(f"{self.name}: more than {N_ROWS_MAX} rows or {N_BYTES_MAX} bytes")
        if self.key is not None:
            self._check_key(self.key_columns)

    def _check_key(self, key: Sequence[str]) -> None:
        if not key or len(set(key)) < len(key):
            raise ValueError(f"{self.name}: a key is of one or more different columns")
        for column in key:
            if column not in self.data.column_names:
                raise ValueError(f"{self.name} has no column {column} to use as its key")
        named = ", ".join(key)
        has_null = any(self.data[column].null_count for column in key)
        if has_null or n_combinations(self.data, key) != self.data.num_rows:
            raise ValueError(f"{self.name}: {named} is not a key: it holds NULL, or a value twice")

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of its key, in order; empty without one."""
        return key_columns(self.key)

    @property
    def sql_types(self) -> dict[str, str]:
        """The DuckDB type name of every column, in order."""
        types = {field.name: sql_type_of(field.type) for field in self.data.schema}
        return {name: sql_type for name, sql_type in types.items() if sql_type is not None}


def key_columns(key: Key) -> tuple[str, ...]:
    """A key as its columns.

    >>> key_columns("city"), key_columns(("part", "supplier")), key_columns(None)
    (('city',), ('part', 'supplier'), ())
    """
    if key is None:
        return ()
    return (key,) if isinstance(key, str) else key


def n_combinations(data: pa.Table, key: Sequence[str]) -> int:
    """How many different rows there are of some columns."""
    if len(key) == 1:
        return len(data[key[0]].unique())
    found: int = data.select(list(key)).group_by(list(key)).aggregate([]).num_rows
    return found


def sql_type_of(arrow: pa.DataType) -> str | None:
    """The DuckDB type name of an Arrow type; None if public tables have no such columns.

    >>> sql_type_of(pa.int64()), sql_type_of(pa.decimal128(9, 2)), sql_type_of(pa.binary())
    ('BIGINT', 'DECIMAL(9,2)', None)
    """
    if pa.types.is_decimal128(arrow):
        return f"DECIMAL({arrow.precision},{arrow.scale})"
    return _SQL_TYPES.get(arrow)


def is_public_name(name: str) -> bool:
    """Whether a public table may have this name."""
    fits = 1 <= len(name) <= NAME_LENGTH_MAX and name.isprintable()
    return fits and name.casefold() not in RESERVED_NAMES
