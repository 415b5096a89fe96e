"""The rows of `information_schema`, for the views of it that have any."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from proxy.api.requests import CATALOG as DATABASE
from proxy.catalog.listed import ListedColumn, ListedTable
from proxy.catalog.world import OWNER, World

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Iterator[Row]

_BITS: Final = {"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}
_MICROSECONDS: Final = 6
_TIMES: Final = {"timestamp": _MICROSECONDS, "timestamptz": _MICROSECONDS, "date": 0}


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def _named(table: ListedTable, before: str = "table") -> dict[str, Any]:
    return {
        f"{before}_catalog": DATABASE,
        f"{before}_schema": table.schema,
        f"{before}_name": table.name,
    }


def _tables(world: World) -> Rows:
    for table in world.tables:
        yield _named(table) | {
            "table_type": "VIEW" if table.is_view else "BASE TABLE",
            "is_insertable_into": "NO",
            "is_typed": "NO",
        }


def _views(world: World) -> Rows:
    for table in world.tables:
        if table.is_view:
            yield _named(table) | {
                "check_option": "NONE",
                "is_updatable": "NO",
                "is_insertable_into": "NO",
            }


def _columns(world: World) -> Rows:
    for table in world.tables:
        for place, column in enumerate(table.columns, start=1):
            yield _named(table) | {
                "column_name": column.name,
                "ordinal_position": place,
                "is_nullable": _yes(column.may_be_null),
                "data_type": column.type.spoken,
                **_digits(column),
                "datetime_precision": _TIMES.get(column.type.name),
                "udt_catalog": DATABASE,
                "udt_schema": "pg_catalog",
                "udt_name": column.type.name,
                "dtd_identifier": str(place),
                "is_self_referencing": "NO",
                "is_identity": "NO",
                "identity_cycle": "NO",
                "is_generated": "NEVER",
                "is_updatable": "NO",
            }


def _digits(column: ListedColumn) -> dict[str, Any]:
    """How many digits a number has, and of which base."""
    if column.digits is not None:
        precision, scale = column.digits
        return {
            "numeric_precision": precision,
            "numeric_precision_radix": 10,
            "numeric_scale": scale,
        }
    bits = _BITS.get(column.type.name)
    if bits is None:
        return {}
    behind_the_point = 0 if column.type.name.startswith("int") else None
    return {
        "numeric_precision": bits,
        "numeric_precision_radix": 2,
        "numeric_scale": behind_the_point,
    }


def _schemata(world: World) -> Rows:
    for name in world.schemas:
        yield {"catalog_name": DATABASE, "schema_name": name, "schema_owner": OWNER}


def _constraints(world: World) -> Rows:
    for table in world.tables:
        if table.key:
            yield _named(table) | {
                "constraint_catalog": DATABASE,
                "constraint_schema": table.schema,
                "constraint_name": f"{table.name}_pkey",
                "constraint_type": "PRIMARY KEY",
                "is_deferrable": "NO",
                "initially_deferred": "NO",
                "enforced": "YES",
            }


def _key_columns(world: World) -> Rows:
    for table in world.tables:
        for place, column in enumerate(table.key, start=1):
            yield _named(table) | {
                "constraint_catalog": DATABASE,
                "constraint_schema": table.schema,
                "constraint_name": f"{table.name}_pkey",
                "column_name": column,
                "ordinal_position": place,
            }


def _privileges(world: World) -> Rows:
    for table in world.tables:
        yield _named(table) | {
            "grantor": OWNER,
            "grantee": world.user,
            "privilege_type": "SELECT",
            "is_grantable": "NO",
            "with_hierarchy": "YES",
        }


def _catalog_name(_world: World) -> Rows:
    yield {"catalog_name": DATABASE}


def _roles(world: World) -> Rows:
    yield {"role_name": world.user}


INFORMATION_ROWS: Final[Mapping[str, Callable[[World], Rows]]] = {
    "columns": _columns,
    "constraint_column_usage": _key_columns,
    "enabled_roles": _roles,
    "information_schema_catalog_name": _catalog_name,
    "key_column_usage": _key_columns,
    "role_table_grants": _privileges,
    "schemata": _schemata,
    "table_constraints": _constraints,
    "table_privileges": _privileges,
    "tables": _tables,
    "views": _views,
}
