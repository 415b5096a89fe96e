"""The shadow catalog: queries about definitions, answered from relations that are made of them.

The SQL runs in a database that is empty but for the relations of the one query. It charges nothing
and can read no data: what it is given are declarations that the caller may know of.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import pyarrow as pa

from planner.catalog_sql.recognise import CATALOG, INFORMATION, is_about_catalog
from planner.catalog_sql.rewrite import catalog_sql, names_after_star
from planner.sql.parameters import Parameters
from planner.sql.statements import Query, read_statement
from proxy.catalog.information_schema import INFORMATION_ROWS
from proxy.catalog.own_relations import OWN_RELATIONS
from proxy.catalog.pg_relations import PG_ROWS
from proxy.catalog.postgresql import relations, vectors
from proxy.catalog.world import World

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
