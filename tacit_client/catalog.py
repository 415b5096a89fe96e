"""Lists the tables that the caller may know of, by Flight SQL: free, and without rows."""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from adbc_driver_flightsql import dbapi as flight_sql

from tacit_client.errors import translated

TYPE_NAME_KEY: Final = b"ARROW:FLIGHT:SQL:TYPE_NAME"
REMARKS_KEY: Final = b"ARROW:FLIGHT:SQL:REMARKS"
PRIMARY_KEY_KEY: Final = b"tacit.primary_key"
TABLE_TYPE: Final = "TABLE"
VIEW_TYPE: Final = "VIEW"
ARROW_TYPES: Final = {
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "double": "DOUBLE",
    "int64": "BIGINT",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMP",
}
DEFAULT_SCHEMA: Final = "public"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
    sql_type : str
    nullable : bool
    is_primary_key : bool
        Whether it is the primary key, or a column of it.
    comment : str, optional
        Its levels, in short.
    key_place : int
        Its place in the primary key, from 1; 0 if it is not in it.
    """

    name: str
    sql_type: str
    nullable: bool
    is_primary_key: bool = False
    comment: str | None = None
    key_place: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table, a view or a synthetic table.

    Parameters
    ----------
    schema : str
    name : str
    is_view : bool
    columns : tuple of Column
    comment : str, optional
        What is to be known of its rows: whom they are about, and which are left out.
    """

    schema: str
    name: str
    is_view: bool
    columns: tuple[Column, ...]
    comment: str | None = None


class Catalog:
    """What the server lists of the tables that the caller may know of.

    Parameters
    ----------
    driver : adbc_driver_flightsql.dbapi.Connection
    """

    def __init__(self, driver: Any) -> None:
        self._driver: flight_sql.Connection = driver

    def schema_names(self) -> list[str]:
        """The schemas that tables are in."""
        return [one["db_schema_name"] for one in self._schemas("db_schemas")]

    def table_names(self, schema: str, *, views: bool = False) -> list[str]:
        """The tables of a schema, or its views."""
        kind = VIEW_TYPE if views else TABLE_TYPE
        return [
            table["table_name"]
            for one in self._schemas("tables", db_schema_filter=_pattern(schema))
            for table in one["db_schema_tables"] or ()
            if table["table_type"] == kind
        ]

    def columns(self, schema: str, table: str) -> tuple[Column, ...]:
        """The columns of a table; none if there is no such table."""
        if not any(
            one["db_schema_tables"]
            for one in self._schemas(
                "tables", db_schema_filter=_pattern(schema), table_name_filter=_pattern(table)
            )
        ):
            return ()
        return tuple(map(_column, self._table_schema(schema, table)))

    def tables(self) -> list[Table]:
        """Every table and view with its columns."""
        return [
            self._table(one["db_schema_name"], table)
            for one in self._schemas("tables")
            for table in one["db_schema_tables"] or ()
        ]

    def _table(self, schema: str, listed: dict[str, Any]) -> Table:
        name = listed["table_name"]
        found = self._table_schema(schema, name)
        return Table(
            schema=schema,
            name=name,
            is_view=listed["table_type"] == VIEW_TYPE,
            columns=tuple(map(_column, found)),
            comment=_remarks(found.metadata),
        )

    def _table_schema(self, schema: str, table: str) -> pa.Schema:
        with translated():
            return self._driver.adbc_get_table_schema(table, db_schema_filter=schema)

    def _schemas(self, depth: Any, **filters: Any) -> list[dict[str, Any]]:
        with translated():
            catalogs = self._driver.adbc_get_objects(depth=depth, **filters).read_all()
        return [one for row in catalogs.to_pylist() for one in row["catalog_db_schemas"] or ()]


def _column(field: pa.Field) -> Column:
    metadata = field.metadata or {}
    return Column(
        name=field.name,
        sql_type=_sql_type(field, metadata),
        nullable=field.nullable,
        is_primary_key=PRIMARY_KEY_KEY in metadata,
        key_place=_key_place(metadata.get(PRIMARY_KEY_KEY)),
        comment=_remarks(metadata),
    )


def _remarks(metadata: dict[bytes, bytes] | None) -> str | None:
    found = (metadata or {}).get(REMARKS_KEY)
    return None if found is None else found.decode()


def _key_place(text: bytes | None) -> int:
    """A place in the key, as the server tells it: "true" of a key of one column."""
    if text is None:
        return 0
    return int(text) if text.isdigit() else 1


def _sql_type(field: pa.Field, metadata: dict[bytes, bytes]) -> str:
    """As the server names it; of a view, which it does not describe, by the Arrow type."""
    if TYPE_NAME_KEY in metadata:
        return metadata[TYPE_NAME_KEY].decode()
    kind = "timestamp" if pa.types.is_timestamp(field.type) else str(field.type)
    return ARROW_TYPES.get(kind, kind.upper())


def _pattern(name: str) -> str:
    r"""A name as a pattern that matches nothing else.

    >>> _pattern("ad_hoc")
    'ad\\_hoc'
    """
    return name.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")
