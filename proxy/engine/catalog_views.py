"""What there is, as SQL tools ask for it: a few views of `information_schema` and `pg_catalog`.

They list the tables, columns and schemas that the caller may know of, as the catalog of Flight SQL
does. Everything here is public; nothing here charges or reads data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from planner.domain.public import PRIVACY_SCHEMA, catalog_view
from planner.domain.table_names import TableNames
from proxy.api.requests import CATALOG, DB_SCHEMA, TableInfo
from proxy.engine.system_views import VIEW_SCHEMAS
from proxy.sources.public_table import PublicTable
from proxy.synthetic_tables.record import SyntheticRecord

Rows: TypeAlias = Sequence[Mapping[str, object]]
Lister: TypeAlias = "Callable[[Sequence[ListedTable]], Rows]"

N_OWN: Final = 16384  # where the numbers of objects begin that are not PostgreSQL's own
_VIEW_SCHEMAS: Final = (PRIVACY_SCHEMA, "information_schema", "pg_catalog")


@dataclass(frozen=True, slots=True)
class ListedTable:
    """One table or view that a caller may know of: its columns' names, types and whether NULL."""

    schema: str
    name: str
    is_view: bool
    columns: tuple[tuple[str, str, bool], ...]


def listed_tables(
    private: Sequence[TableInfo],
    public: Sequence[PublicTable],
    synthetic: Sequence[SyntheticRecord],
) -> list[ListedTable]:
    """The tables and the views of `data_privacy`, in this order."""
    found = [
        ListedTable(
            DB_SCHEMA,
            info.schema.table,
            False,
            tuple((axis.name, axis.sql_type, axis.null) for axis in info.schema.axes),
        )
        for info in private
    ]
    found += [
        ListedTable(
            DB_SCHEMA,
            table.name,
            False,
            tuple((name, kind, True) for name, (kind, _) in table.columns().items()),
        )
        for table in public
    ]
    names = TableNames(
        tuple(one.name for one in found), tuple(record.full_name for record in synthetic)
    )
    found += [
        ListedTable(
            DB_SCHEMA if names.brief(record.full_name) == record.name else record.table,
            record.name,
            False,
            tuple((name, sql_type, True) for name, sql_type in record.columns),
        )
        for record in synthetic
    ]
    return found + [
        ListedTable(
            PRIVACY_SCHEMA,
            name,
            True,
            tuple((one.name, _SQL_TYPES.get(one.type, "VARCHAR"), one.nullable) for one in schema),
        )
        for name, schema in VIEW_SCHEMAS.items()
    ]


def _tables(listed: Sequence[ListedTable]) -> Rows:
    return [
        {
            "table_catalog": CATALOG,
            "table_schema": one.schema,
            "table_name": one.name,
            "table_type": "VIEW" if one.is_view else "BASE TABLE",
        }
        for one in listed
    ]


def _columns(listed: Sequence[ListedTable]) -> Rows:
    return [
        {
            "table_catalog": CATALOG,
            "table_schema": one.schema,
            "table_name": one.name,
            "column_name": name,
            "ordinal_position": place,
            "is_nullable": "YES" if may_be_null else "NO",
            "data_type": kind,
            "udt_name": kind.lower(),
        }
        for one in listed
        for place, (name, kind, may_be_null) in enumerate(one.columns, start=1)
    ]


def _schemata(listed: Sequence[ListedTable]) -> Rows:
    return [{"catalog_name": CATALOG, "schema_name": name} for name in _schemas(listed)]


def _namespaces(listed: Sequence[ListedTable]) -> Rows:
    return [{"oid": N_OWN + place, "nspname": name} for place, name in enumerate(_schemas(listed))]


def _classes(listed: Sequence[ListedTable]) -> Rows:
    schemas = _schemas(listed)
    return [
        {
            "oid": N_OWN + len(schemas) + place,
            "relname": one.name,
            "relnamespace": N_OWN + schemas.index(one.schema),
            "relkind": "v" if one.is_view else "r",
        }
        for place, one in enumerate(listed)
    ]


def _schemas(listed: Sequence[ListedTable]) -> list[str]:
    return list(dict.fromkeys((DB_SCHEMA, *_VIEW_SCHEMAS, *(one.schema for one in listed))))


def _schema(declaration: str) -> pa.Schema:
    """A schema of texts; of whole numbers where a name ends in an exclamation mark."""
    return pa.schema(
        pa.field(name.rstrip("!"), pa.int64() if name.endswith("!") else pa.string())
        for name in declaration.split()
    )


_SQL_TYPES: Final = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}
_VIEWS: Final[
    Mapping[tuple[str, str], tuple[pa.Schema, Callable[[Sequence[ListedTable]], Rows]]]
] = {
    ("information_schema", "tables"): (
        _schema("table_catalog table_schema table_name table_type"),
        _tables,
    ),
    ("information_schema", "columns"): (
        _schema(
            "table_catalog table_schema table_name column_name ordinal_position! column_default "
            "is_nullable data_type character_maximum_length! numeric_precision! numeric_scale! "
            "datetime_precision! udt_name"
        ),
        _columns,
    ),
    ("information_schema", "schemata"): (
        _schema("catalog_name schema_name schema_owner"),
        _schemata,
    ),
    ("pg_catalog", "pg_namespace"): (_schema("oid! nspname nspowner!"), _namespaces),
    ("pg_catalog", "pg_class"): (
        _schema("oid! relname relnamespace! relowner! reltuples! relkind"),
        _classes,
    ),
}
CATALOG_VIEWS: Final = tuple(_VIEWS)
_BY_OUTER_NAME: Final = {catalog_view(*names): view for names, view in _VIEWS.items()}


def is_catalog_view(name: str) -> bool:
    """Whether the outer SQL calls one of these views so."""
    return name in _BY_OUTER_NAME


def catalog_rows(name: str, listed: Sequence[ListedTable]) -> pa.Table:
    """A view by its name in the outer SQL."""
    schema, rows = _BY_OUTER_NAME[name]
    return pa.Table.from_pylist(list(rows(listed)), schema=schema)
