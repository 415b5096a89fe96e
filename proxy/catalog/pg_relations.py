"""The rows of `pg_catalog`, and the relations of our own beside them.

The rows of `pg_catalog`: for each relation that has any, what its rows are.

A relation that is not here is empty: there are no functions, triggers, sequences or policies.

Relations of our own, which functions that look something up are written out with.

No one can name them: their schema is no schema of the catalog.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from planner.catalog_sql import CATALOG, DEFINITIONS, RELATION_NAMES, TYPE_NAMES
from proxy.api import CATALOG as DATABASE
from proxy.catalog.world import (
    DATABASE_NUMBER,
    OWNER,
    OWNER_NUMBER,
    CatalogType,
    ListedTable,
    World,
    schema_number,
    types,
)

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Iterator[Row]

_UTF8: Final = 6
_HEAP, _BTREE = 2, 403
_RELATIONS, _DATABASES = 1259, 1262
_DEFAULT_COLLATION: Final = 100
_STORED_APART: Final = -1  # a type without a size of its own


def _namespaces(world: World) -> Rows:
    for name, number in world.schemas.items():
        yield {"oid": number, "nspname": name, "nspowner": OWNER_NUMBER}


def _classes(world: World) -> Rows:
    """Users' tables and their keys, not the catalog's own relations.

    Clients that go through everything would ask several questions about each of these.
    """
    for table in world.tables:
        kind = "v" if table.is_view else "r"
        row = _class(
            table.number, table.name, world.schemas[table.schema], kind, len(table.columns)
        )
        yield row | {"relhasindex": bool(table.key)}
        if table.key:
            schema = world.schemas[table.schema]
            yield _class(index_number(table), f"{table.name}_pkey", schema, "i", len(table.key))


def _class(number: int, name: str, schema: int, kind: str, n_columns: int) -> dict[str, Any]:
    return {
        "oid": number,
        "relname": name,
        "relnamespace": schema,
        "reltype": 0,
        "reloftype": 0,
        "relowner": OWNER_NUMBER,
        "relam": {"r": _HEAP, "i": _BTREE}.get(kind, 0),
        "relfilenode": 0,
        "reltablespace": 0,
        "relpages": 0,
        "reltuples": -1.0,  # unknown, as before PostgreSQL has looked
        "reltoastrelid": 0,
        "relhasindex": False,
        "relisshared": False,
        "relpersistence": "p",
        "relkind": kind,
        "relnatts": n_columns,
        "relchecks": 0,
        "relhasrules": False,
        "relhastriggers": False,
        "relhassubclass": False,
        "relrowsecurity": False,
        "relforcerowsecurity": False,
        "relispopulated": True,
        "relreplident": "d",
        "relispartition": False,
        "relacl": ["=r/tacit"],
    }


def index_number(table: ListedTable) -> int:
    """The object number of the index of a primary key."""
    return schema_number(f"key {table.schema}.{table.name}")


def constraint_number(table: ListedTable) -> int:
    """The object number of a primary key."""
    return schema_number(f"constraint {table.schema}.{table.name}")


def _attributes(world: World) -> Rows:
    for table in world.tables:
        for place, column in enumerate(table.columns, start=1):
            kind, digits = column.type, column.digits
            row = {
                "attrelid": table.number,
                "attname": column.name,
                "atttypid": kind.oid,
                "attlen": kind.size,
                "attnum": place,
                "atttypmod": -1 if digits is None else (digits[0] << 16 | digits[1]) + 4,
                "attnotnull": not column.may_be_null,
                **_of_type(kind),
            }
            yield row
            if column.name in table.key:
                number = table.key.index(column.name) + 1
                own = {"attrelid": index_number(table), "attnum": number, "attnotnull": False}
                yield row | own


def _of_type(kind: CatalogType) -> dict[str, Any]:
    """What an attribute has for its type, or like every other attribute."""
    return {
        "attstattarget": -1,
        "attndims": 0,
        "attcacheoff": -1,
        "attbyval": kind.is_by_value,
        "attalign": "i",
        "attstorage": "x" if kind.size == _STORED_APART else "p",
        "attcompression": "",
        "atthasdef": False,
        "atthasmissing": False,
        "attidentity": "",
        "attgenerated": "",
        "attisdropped": False,
        "attislocal": True,
        "attinhcount": 0,
        "attcollation": _DEFAULT_COLLATION if kind.category == "S" else 0,
    }


def _types(world: World) -> Rows:
    for one in types():
        yield {
            "oid": one.oid,
            "typname": one.name,
            "typnamespace": world.schemas[CATALOG],
            "typowner": OWNER_NUMBER,
            "typlen": one.size,
            "typbyval": one.is_by_value,
            "typtype": one.kind,
            "typcategory": one.category,
            "typispreferred": one.is_preferred,
            "typisdefined": True,
            "typdelim": ",",
            "typrelid": 0,
            "typsubscript": "array_subscript_handler" if one.element else "-",
            "typelem": one.element,
            "typarray": one.list_type,
            "typinput": one.reader,
            "typoutput": one.reader.removesuffix("in") + "out",
            "typreceive": one.reader.removesuffix("in") + "recv",
            "typsend": one.reader.removesuffix("in") + "send",
            "typalign": "i",
            "typstorage": "x" if one.size == _STORED_APART else "p",
            "typnotnull": False,
            "typbasetype": 0,
            "typtypmod": -1,
            "typndims": 0,
            "typcollation": _DEFAULT_COLLATION if one.category == "S" else 0,
        }


def _databases(_world: World) -> Rows:
    yield {
        "oid": DATABASE_NUMBER,
        "datname": DATABASE,
        "datdba": OWNER_NUMBER,
        "encoding": _UTF8,
        "datlocprovider": "c",
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
        "datcollate": "C",
        "datctype": "C",
    }


def _roles(world: World) -> Rows:
    for number, name in ((OWNER_NUMBER, OWNER), (world.user_number, world.user)):
        yield {
            "oid": number,
            "rolname": name,
            "rolsuper": False,
            "rolinherit": True,
            "rolcreaterole": False,
            "rolcreatedb": False,
            "rolcanlogin": number != OWNER_NUMBER,
            "rolreplication": False,
            "rolconnlimit": -1,
            "rolpassword": "********",
            "rolbypassrls": False,
        }


def _users(world: World) -> Rows:
    yield {
        "usename": world.user,
        "usesysid": world.user_number,
        "usecreatedb": False,
        "usesuper": False,
        "userepl": False,
        "usebypassrls": False,
        "passwd": "********",
    }


def _descriptions(world: World) -> Rows:
    for table in world.tables:
        texts = [table.comment, *(column.comment for column in table.columns)]
        for place, text in enumerate(texts):
            if text is not None:
                yield {
                    "objoid": table.number,
                    "classoid": _RELATIONS,
                    "objsubid": place,
                    "description": text,
                }


def _keyed(world: World) -> Iterator[tuple[ListedTable, list[int]]]:
    """Tables with a primary key, and the places of its columns."""
    for table in world.tables:
        if table.key:
            names = [column.name for column in table.columns]
            yield table, [names.index(column) + 1 for column in table.key]


def _indexes(world: World) -> Rows:
    for table, places in _keyed(world):
        yield {
            "indexrelid": index_number(table),
            "indrelid": table.number,
            "indnatts": len(places),
            "indnkeyatts": len(places),
            "indisunique": True,
            "indnullsnotdistinct": False,
            "indisprimary": True,
            "indisexclusion": False,
            "indimmediate": True,
            "indisclustered": False,
            "indisvalid": True,
            "indcheckxmin": False,
            "indisready": True,
            "indislive": True,
            "indisreplident": False,
            "indkey": places,
            "indcollation": [0] * len(places),
            "indclass": [0] * len(places),
            "indoption": [0] * len(places),
        }


def _constraints(world: World) -> Rows:
    for table, places in _keyed(world):
        yield {
            "oid": constraint_number(table),
            "conname": f"{table.name}_pkey",
            "connamespace": world.schemas[table.schema],
            "contype": "p",
            "condeferrable": False,
            "condeferred": False,
            "convalidated": True,
            "conrelid": table.number,
            "contypid": 0,
            "conindid": index_number(table),
            "conparentid": 0,
            "confrelid": 0,
            "conislocal": True,
            "coninhcount": 0,
            "connoinherit": True,
            "conkey": places,
        }


def _settings(world: World) -> Rows:
    for name, value in sorted(world.settings.items()):
        yield {
            "name": name,
            "setting": value,
            "category": "Settings",
            "context": "user",
            "vartype": "string",
            "source": "session",
            "boot_val": value,
            "reset_val": value,
            "pending_restart": False,
        }


def _access_methods(_world: World) -> Rows:
    yield {"oid": _HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield {"oid": _BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"}


def _collations(world: World) -> Rows:
    yield {
        "oid": _DEFAULT_COLLATION,
        "collname": "default",
        "collnamespace": world.schemas[CATALOG],
        "collowner": OWNER_NUMBER,
        "collprovider": "d",
        "collisdeterministic": True,
        "collencoding": -1,
    }


def _tables(world: World) -> Rows:
    for table in world.tables:
        if not table.is_view:
            yield {
                "schemaname": table.schema,
                "tablename": table.name,
                "tableowner": OWNER,
                "hasindexes": bool(table.key),
                "hasrules": False,
                "hastriggers": False,
                "rowsecurity": False,
            }


def _views(world: World) -> Rows:
    for table in world.tables:
        if table.is_view:
            yield {"schemaname": table.schema, "viewname": table.name, "viewowner": OWNER}


def _tablespaces(_world: World) -> Rows:
    yield {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER_NUMBER}


PG_ROWS: Final[Mapping[str, Callable[[World], Rows]]] = {
    "pg_am": _access_methods,
    "pg_attribute": _attributes,
    "pg_class": _classes,
    "pg_collation": _collations,
    "pg_constraint": _constraints,
    "pg_database": _databases,
    "pg_description": _descriptions,
    "pg_index": _indexes,
    "pg_namespace": _namespaces,
    "pg_roles": _roles,
    "pg_settings": _settings,
    "pg_tables": _tables,
    "pg_tablespace": _tablespaces,
    "pg_type": _types,
    "pg_user": _users,
    "pg_views": _views,
}


OwnRows: TypeAlias = Iterator[Mapping[str, Any]]


def _type_names(_world: World) -> OwnRows:
    for one in types():
        yield {"oid": one.oid, "spoken": one.spoken}


def _relation_names(world: World) -> OwnRows:
    """Every table by its name with its schema and, where that finds it, without."""
    facts = world.facts
    for table in world.tables:
        yield {"oid": table.number, "name": f"{table.schema}.{table.name}"}
        if table.schema == facts.schema:
            yield {"oid": table.number, "name": table.name}


def _definitions(world: World) -> OwnRows:
    for table in world.tables:
        if table.key:
            columns = [_quoted(column) for column in table.key]
            listed = ", ".join(columns)
            where = f"{_quoted(table.schema)}.{_quoted(table.name)}"
            yield {
                "oid": index_number(table),
                "place": 0,
                "sql": f"CREATE UNIQUE INDEX {_quoted(table.name + '_pkey')} ON {where} "
                f"USING btree ({listed})",
            }
            for place, column in enumerate(columns, start=1):
                yield {"oid": index_number(table), "place": place, "sql": column}
            number = constraint_number(table)
            yield {"oid": number, "place": 0, "sql": f"PRIMARY KEY ({listed})"}


def _quoted(name: str) -> str:
    """A name as SQL has it: between quotes where it needs them."""
    is_plain = name.isidentifier() and name.isascii() and name == name.lower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _named(name: str) -> tuple[str, str]:
    schema, _, relation = name.partition(".")
    return schema, relation


def _columns(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([("oid", pa.uint32()), *columns.items()])


OWN_RELATIONS: Final[Mapping[tuple[str, str], tuple[pa.Schema, Callable[[World], OwnRows]]]] = {
    _named(TYPE_NAMES): (_columns(spoken=pa.string()), _type_names),
    _named(RELATION_NAMES): (_columns(name=pa.string()), _relation_names),
    _named(DEFINITIONS): (_columns(place=pa.int64(), sql=pa.string()), _definitions),
}
