"""The tables and views that a caller may know of, as the catalog lists them.

Everything is public: declarations, types, and short texts of what columns may hold.
"""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa

from cube.axis import Axis
from planner.domain.relations import PRIVACY_SCHEMA, TableNames, placed
from proxy.api.axis_text import axis_kind, describe_levels
from proxy.api.requests import DB_SCHEMA, PRIVATE, TableInfo
from proxy.api.rows_kept import about_rows
from proxy.catalog.postgresql import CatalogType, types_by_name
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.record import SyntheticRecord

N_OWN: Final = 16384  # where PostgreSQL's numbers of users' objects begin
_N_NUMBERS: Final = 2**31 - N_OWN
# PostgreSQL's types for ours.
_TYPES: Final = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "UTINYINT": "int2",
    "INTEGER": "int4",
    "USMALLINT": "int4",
    "BIGINT": "int8",
    "UINTEGER": "int8",
    "UBIGINT": "numeric",
    "HUGEINT": "numeric",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "BLOB": "bytea",
}
_ARROW_TYPES: Final = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("ms", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """A column: its name, its SQL type, whether it may be NULL, and what it holds."""

    name: str
    sql_type: str
    may_be_null: bool = True
    comment: str | None = None

    @property
    def type(self) -> CatalogType:
        """PostgreSQL's type for it."""
        name = self.sql_type.partition("(")[0]
        known = "numeric" if name == "DECIMAL" else _TYPES.get(name, "text")
        return types_by_name()[known]

    @property
    def digits(self) -> tuple[int, int] | None:
        """The digits of a DECIMAL in all, and behind its point."""
        name, _, digits = self.sql_type.rstrip(")").partition("(")
        if name != "DECIMAL" or not digits:
            return None
        precision, _, scale = digits.partition(",")
        return int(precision), int(scale or 0)


@dataclass(frozen=True, slots=True)
class ListedTable:
    """One table or view that a caller may know of.

    Parameters
    ----------
    schema, name : str
    number : int
        Its object number, which stays the same as long as its name does.
    is_view : bool
    columns : tuple of ListedColumn
    comment : str, optional
    key : tuple of str
        The columns of its primary key, in order; empty without one.
    """

    schema: str
    name: str
    number: int
    is_view: bool
    columns: tuple[ListedColumn, ...]
    comment: str | None = None
    key: tuple[str, ...] = ()


def listed_tables(
    asked: Sequence[TableInfo],
    public: Sequence[PublicTable],
    synthetic: Sequence[SyntheticRecord],
    views: Sequence[tuple[str, pa.Schema]],
) -> tuple[ListedTable, ...]:
    """Tables that are asked, public and synthetic tables, and the views of `data_privacy`."""
    taken: set[int] = set()
    found = [_asked(info, taken) for info in asked]
    found += [_public(table, taken) for table in public]
    declared = (info.schema.table for info in asked), (table.name for table in public)
    names = TableNames(tuple(chain(*declared)), tuple(record.full_name for record in synthetic))
    found += [_synthetic(record, names, taken) for record in synthetic]
    return (*found, *(_view(name, schema, taken) for name, schema in views))


def _asked(info: TableInfo, taken: set[int]) -> ListedTable:
    db_schema, name = placed(info.schema.table, DB_SCHEMA)
    return ListedTable(
        db_schema,
        name,
        _number(db_schema, name, taken),
        is_view=False,
        columns=tuple(_axis(axis) for axis in info.schema.axes),
        comment=_about_private(info) if info.kind == PRIVATE else info.comment,
    )


def _about_private(info: TableInfo) -> str:
    default = info.default
    return (
        f"Private. {about_rows(info.schema)} Counts are within "
        f"{default.half_width:g} of the truth with probability {default.confidence:g} unless a "
        "statement asks for another accuracy."
    )


def _axis(axis: Axis) -> ListedColumn:
    text = f"{axis_kind(axis)}: {describe_levels(axis)}"
    return ListedColumn(axis.name, axis.sql_type, axis.null, text)


def _public(table: PublicTable, taken: set[int]) -> ListedTable:
    return ListedTable(
        DB_SCHEMA,
        table.name,
        _number(DB_SCHEMA, table.name, taken),
        is_view=False,
        columns=tuple(
            ListedColumn(name, kind, name not in table.key_columns)
            for name, kind in table.sql_types.items()
        ),
        comment="Public: read as it is, free.",
        key=table.key_columns,
    )


def _synthetic(record: SyntheticRecord, names: TableNames, taken: set[int]) -> ListedTable:
    is_brief = names.brief(record.full_name) == record.name
    schema = DB_SCHEMA if is_brief else record.table
    return ListedTable(
        schema,
        record.name,
        _number(schema, record.name, taken),
        is_view=False,
        columns=tuple(ListedColumn(name, sql_type) for name, sql_type in record.columns),
        comment=f"Synthetic rows, made from measurements of {record.table}: no row is anybody's.",
    )


def _view(name: str, schema: pa.Schema, taken: set[int]) -> ListedTable:
    return ListedTable(
        PRIVACY_SCHEMA,
        name,
        _number(PRIVACY_SCHEMA, name, taken),
        is_view=True,
        columns=tuple(
            ListedColumn(one.name, _ARROW_TYPES.get(one.type, "VARCHAR"), one.nullable)
            for one in schema
        ),
    )


def schema_number(name: str, taken: Collection[int] = ()) -> int:
    """The object number of a schema."""
    return _own_number(f"schema {name}", taken)


def _number(schema: str, name: str, taken: set[int]) -> int:
    number = _own_number(f"{schema}.{name}", taken)
    taken.add(number)
    return number


def _own_number(text: str, taken: Collection[int]) -> int:
    """A number that a name has in every process, unless two names would have the same."""
    number = N_OWN + zlib.crc32(text.encode()) % _N_NUMBERS
    while number in taken:
        number += 1
    return number
