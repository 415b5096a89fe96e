"""Relations of our own, which functions that look something up are written out with.

Nobody can name them: their schema is no schema of the catalog.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from planner.catalog_sql.functions import DEFINITIONS, RELATION_NAMES, TYPE_NAMES
from proxy.catalog.pg_relations import constraint_number, index_number
from proxy.catalog.postgresql import types
from proxy.catalog.world import World

Rows: TypeAlias = Iterator[Mapping[str, Any]]


def _type_names(_world: World) -> Rows:
    for one in types():
        yield {"oid": one.oid, "spoken": one.spoken}


def _relation_names(world: World) -> Rows:
    """Every table by its name with its schema and, where that finds it, without."""
    facts = world.facts
    for table in world.tables:
        yield {"oid": table.number, "name": f"{table.schema}.{table.name}"}
        if table.schema == facts.schema:
            yield {"oid": table.number, "name": table.name}


def _definitions(world: World) -> Rows:
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


OWN_RELATIONS: Final[Mapping[tuple[str, str], tuple[pa.Schema, Callable[[World], Rows]]]] = {
    _named(TYPE_NAMES): (_columns(spoken=pa.string()), _type_names),
    _named(RELATION_NAMES): (_columns(name=pa.string()), _relation_names),
    _named(DEFINITIONS): (_columns(place=pa.int64(), sql=pa.string()), _definitions),
}
