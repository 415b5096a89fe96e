"""Public tables: small dimension tables that anybody may see, declared beside the private ones.

A public table is a value: its name, its key and its rows as Arrow. Reading it costs nothing, and it
holds nothing private. `sources.public_file` reads it from a file; the planner decides what may be
asked of it, alone or joined with a private table.
"""

from dataclasses import dataclass

import pyarrow as pa

from cube.axis import NAME_LENGTH_MAX
from planner.domain.public import PRIVACY_SCHEMA, Columns, PublicRelation

N_ROWS_MAX = 1_000_000  # a private column has at most 2**20 levels, so more keys could not match
N_BYTES_MAX = 256 * 2**20  # all of it stays in memory, beside the private tables
N_COLUMNS_MAX = 1000
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
    key : str, optional
        A column without duplicates and NULLs, in the spelling of `data`.
    data : pyarrow.Table
        Its rows; each column of a type that `sql_type_of` names.
    """

    name: str
    key: str | None
    data: pa.Table

    def relation(self) -> PublicRelation:
        """The table for the planner: with its values, if it has a key to join by."""
        columns = tuple(self.data.column_names)
        values = {} if self.key is None else self.columns()
        return PublicRelation(self.name, columns, self.key, values, types=self.sql_types)

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
            self._check_key(self.key)

    def _check_key(self, key: str) -> None:
        if key not in self.data.column_names:
            raise ValueError(f"{self.name} has no column {key} to use as its key")
        column = self.data[key]
        if column.null_count or len(column.unique()) != len(column):
            raise ValueError(f"{self.name}: {key} is not a key: it holds NULL, or a value twice")

    @property
    def sql_types(self) -> dict[str, str]:
        """The DuckDB type name of every column, in order."""
        types = {field.name: sql_type_of(field.type) for field in self.data.schema}
        return {name: sql_type for name, sql_type in types.items() if sql_type is not None}


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
