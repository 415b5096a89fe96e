"""Which queries are about the catalog: those that read `pg_catalog` or `information_schema` alone.

A query of no table is one, too, if it asks for something that only the catalog knows, such as
``version()``. A look at the text tells most queries apart; only those that may be one are parsed.
"""

import re
from collections.abc import Collection
from typing import Final

from sqlglot import exp

from cube.refusals import Refused, UnsupportedSql
from planner.cache import BoundedCache
from planner.catalog_sql.functions import KNOWN_FUNCTIONS
from planner.catalog_sql.reading import read_tree
from planner.sql.messages import position
from planner.sql.statements import Query

CATALOG: Final = "pg_catalog"
INFORMATION: Final = "information_schema"
SCHEMAS: Final = (CATALOG, INFORMATION)
# What a text about the catalog has somewhere, between quotes or not.
_HINT: Final = re.compile(
    r"pg_|information_schema|version|current_|session_user|has_|_description|format_type|inet_"
    r"|txid|set_config|::reg|\buser\b|array_|to_reg",
    re.IGNORECASE,
)
N_KNOWN_MAX: Final = 1024
# Functions that are written without parentheses, as the parser reads them.
FACT_NODES: Final = {
    "CurrentUser": "current_user",
    "SessionUser": "session_user",
    "CurrentSchema": "current_schema",
    "CurrentSchemas": "current_schemas",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_catalog",
    "CurrentRole": "current_role",
    "CurrentVersion": "version",
}

_VERDICTS: BoundedCache[str, bool] = BoundedCache(n_entries_max=N_KNOWN_MAX, n_bytes_max=2**23)


def is_about_catalog(query: Query, relations: Collection[str]) -> bool:
    """Whether a query is answered by the catalog.

    Parameters
    ----------
    query : Query
    relations : collection of str
        The relations of `pg_catalog`, which need no schema before their names.

    Raises
    ------
    UnsupportedSql
        If it reads the catalog and other tables together.
    """
    known = _VERDICTS.get(query.text)  # first: even the look at a text takes longer than this
    if known is None:
        known = _HINT.search(query.text) is not None and _judged(query, relations)
        _VERDICTS.put(query.text, known, n_bytes=len(query.text))
    return known


def _judged(query: Query, relations: Collection[str]) -> bool:
    try:
        tree = read_tree(query).tree
    except Refused:
        return False  # planning says why
    tables = base_tables(tree)
    ours = [table for table in tables if is_relation(table, relations)]
    others = [table for table in tables if not is_relation(table, relations)]
    if ours and others:
        raise UnsupportedSql(
            f"{others[0].name} cannot be read beside the catalog.",
            hint="Ask for them in two statements.",
            position=position(others[0]),
        )
    return bool(ours) or (not others and _asks_for_facts(tree))


def base_tables(tree: exp.Expr) -> list[exp.Table]:
    """The tables that a query reads: no CTE, no function."""
    named = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and (table.db or table.name.casefold() not in named)
    ]


def is_relation(table: exp.Table, relations: Collection[str]) -> bool:
    """Whether a table is one of the catalog."""
    schema = table.db.casefold()
    return schema in SCHEMAS or (not schema and table.name.casefold() in relations)


def _asks_for_facts(tree: exp.Expr) -> bool:
    """Whether a query without tables calls something that only the catalog knows."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and node.name.casefold() in KNOWN_FUNCTIONS:
            return True
        if isinstance(node, exp.Cast) and "reg" in node.to.sql("postgres").casefold():
            return True
        if type(node).__name__ in FACT_NODES:
            return True
    return False
