"""Recognises queries about the catalog, and parses them.

How a query of the catalog is parsed: lists of PostgreSQL's own types, which sqlglot has not.

Lists that are written as texts, ``'{a,b}'``, are read here, too.

Which queries are about the catalog: those that read `pg_catalog` or `information_schema` alone.

A query of no table is one, too, if it asks for something that only the catalog knows, such as
``version()``. A look at the text tells most queries apart; only those that may be one are parsed.
"""

import re
from collections.abc import Collection
from typing import Final

from sqlglot import exp

from cube.refusals import InvalidSql, Refused, UnsupportedSql
from planner.cache import BoundedCache
from planner.catalog_sql.functions import KNOWN_FUNCTIONS
from planner.sql import Parameters, Query, QueryTree, parse, position

# Lists of types that sqlglot knows no lists of.
_LISTS: Final = re.compile(
    r'(::\s*|\bAS\s+)(?:pg_catalog\.)?(oid|regclass|regtype|regproc|name|"char")\s*\[\s*\]',
    re.IGNORECASE,
)
# PostgreSQL takes any word for the name of a column after AS; sqlglot does not take these.
_NAMES: Final = re.compile(
    r"(\bAS\s+)(select|table|order|group|where|from|all|end|user|column|check|grant)"
    r"(?=\s*,|\s+FROM\b)",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')


def read_tree(query: Query, parameters: Parameters = ()) -> QueryTree:
    """A query of the catalog as a tree.

    Raises
    ------
    Refused
        If it does not parse.
    """
    text = _LISTS.sub(
        lambda match: match[1] + ("BIGINT[]" if match[2].lower() == "oid" else "VARCHAR[]"),
        query.text,
    )
    try:
        found = parse(Query(text, query.start), parameters)
    except InvalidSql:
        named = _NAMES.sub(r'\1"\2"', text)
        if named == text:
            raise
        found = parse(Query(named, query.start), parameters)
    for unnested in list(found.tree.find_all(exp.Unnest)):
        _side_by_side(unnested)
    return found


def _side_by_side(unnested: exp.Unnest) -> None:
    """Write UNNEST of several lists as a SELECT of them, as which DuckDB has it."""
    lists, alias = unnested.expressions, unnested.args.get("alias")
    names = [one.name for one in alias.args.get("columns") or []] if alias is not None else []
    offset = unnested.args.get("offset")
    if isinstance(offset, exp.Identifier):
        names.append(offset.name)
    if len(lists) < 2 or alias is None or len(names) < len(lists):  # noqa: PLR2004 - several
        return
    values: list[exp.Expr] = [exp.Explode(this=one.copy()) for one in lists]
    if offset:
        one = exp.Literal.number(1)
        values.append(exp.Anonymous(this="generate_subscripts", expressions=[lists[0].copy(), one]))
    shown = [
        exp.alias_(value, name, quoted=True) for value, name in zip(values, names, strict=False)
    ]
    around = exp.TableAlias(this=alias.this.copy()) if alias.this is not None else None
    unnested.replace(exp.Subquery(this=exp.select(*shown), alias=around))


def listed_items(text: str) -> list[str | None] | None:
    """The items of a list that is written as a text; None if it is not one of one dimension.

    >>> listed_items('{a,"b, c",NULL}')
    ['a', 'b, c', None]
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or "{" in stripped[1:]:
        return None
    return [_item(*found) for found in _ITEM.findall(stripped[1:-1])]


def _item(quoted: str, bare: str) -> str | None:
    if not bare:
        return re.sub(r"\\(.)", r"\1", quoted)
    return None if bare.strip().upper() == "NULL" else bare.strip()


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
            f"A query of the catalog cannot read {others[0].name} as well.",
            hint="Send two statements.",
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
