"""The shadow catalog: queries about definitions, answered from declarations.

The rows of `information_schema`, for the views of it that have any.

The SQL runs in a database that is empty but for the relations of the one query. It charges nothing
and can read no data: what it is given are declarations that the caller may know of.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from planner.catalog_sql import (
    CATALOG,
    INFORMATION,
    catalog_sql,
    is_about_catalog,
    names_after_star,
)
from planner.sql import Parameters, Query, read_statement
from proxy.api import CATALOG as DATABASE
from proxy.catalog.pg_relations import OWN_RELATIONS, PG_ROWS
from proxy.catalog.world import OWNER, ListedColumn, ListedTable, World, relations, vectors

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
    """How many digits a number has, and their base."""
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


_ROWS: Final = {
    **{(CATALOG, name): rows for name, rows in PG_ROWS.items()},
    **{(INFORMATION, name): rows for name, rows in INFORMATION_ROWS.items()},
}
_NAMES: Final = frozenset(name for schema, name in relations() if schema == CATALOG)
_KNOWN: Final = frozenset(relations()) | OWN_RELATIONS.keys()


class RunsSql(Protocol):
    """A database that is empty but for what it is given."""

    def run(self, sql: str, relations: Mapping[str, pa.Table], what: str) -> pa.Table:
        """The result of a query over relations, by their names; refusals call it `what`."""
        ...


def is_catalog_query(query: Query) -> bool:
    """Whether a query is for the catalog to answer; UnsupportedSql if only a part of it is."""
    return is_about_catalog(query, _NAMES)


def is_catalog_text(sql: str) -> bool:
    """Whether a statement is a query for the catalog to answer."""
    match read_statement(sql):
        case Query() as query:
            return is_catalog_query(query)
        case _:
            return False


def catalog_answer(
    query: Query, parameters: Parameters, world: World, database: RunsSql
) -> pa.Table:
    """The answer to a query of the catalog.

    Raises
    ------
    Refused
        If it names what is not there, or calls what is not computed, or takes too long.
    """
    asked = catalog_sql(query, parameters, world.facts, _KNOWN)
    given = {name: _relation(name, world) for name in asked.reads}
    found = database.run(
        asked.text,
        {".".join(name): relation for name, relation in given.items()},
        "question to the catalog",
    )
    known = {name for relation in given.values() for name in relation.schema.names}
    names = asked.names or names_after_star(found.schema.names, known)
    taken = [asked.renamed.get(name, name) for name in names]
    return _with_vectors_written(found, taken).rename_columns(names)


def _with_vectors_written(found: pa.Table, taken: Sequence[str]) -> pa.Table:
    """A result whose columns that are vectors are texts, as PostgreSQL writes them."""
    for place, name in enumerate(taken):
        if name in vectors() and pa.types.is_list(found.schema.field(place).type):
            column = found.column(place).to_pylist()
            texts = [None if one is None else " ".join(map(str, one)) for one in column]
            found = found.set_column(place, name, pa.array(texts, pa.string()))
    return found


def _relation(name: tuple[str, str], world: World) -> pa.Table:
    if name in OWN_RELATIONS:
        schema, rows = OWN_RELATIONS[name]
        return pa.Table.from_pylist(list(rows(world)), schema=schema)
    made = _ROWS.get(name)
    return pa.Table.from_pylist([] if made is None else list(made(world)), schema=relations()[name])
