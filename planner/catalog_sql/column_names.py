"""What PostgreSQL calls the columns of a query, which is told of its text before it is written out.

Clients look columns up by these names. Names without quotes are in lower case, and several columns
may have one name.
"""

from collections.abc import Collection, Sequence
from typing import Final

from sqlglot import exp

from planner.catalog_sql.nodes import type_name
from planner.catalog_sql.recognise import FACT_NODES

_SHORT: Final = {"integer": "int4", "int": "int4", "bigint": "int8", "boolean": "bool"}
_UNNAMED: Final = "?column?"
# Functions that the parser calls by another name.
_SPOKEN: Final = {
    "Array": "array",
    "Case": "case",
    "Exists": "exists",
    "Explode": "unnest",
    "ExplodingGenerateSeries": "generate_series",
    "GroupConcat": "string_agg",
    "LogicalAnd": "bool_and",
    "LogicalOr": "bool_or",
}


def columns_named(tree: exp.Expr) -> list[str] | None:
    """The names of a query's columns; None if a star stands for some of them."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    columns = list(tree.expressions)
    stars = [one for one in columns if isinstance(one, exp.Star) or one.is_star]
    return None if stars else [column_named(one) for one in columns]


def columns_renamed(tree: exp.Expr) -> dict[str, str]:
    """The columns of relations that a query gives another name, by that name."""
    selects = tree.expressions if isinstance(tree, exp.Select) else []
    aliases = [one for one in selects if isinstance(one, exp.Alias)]
    return {
        column_named(one): one.this.name.lower()
        for one in aliases
        if isinstance(one.this, exp.Column)
    }


def names_after_star(given: Sequence[str], known: Collection[str]) -> list[str]:
    """The columns of a star as PostgreSQL calls them: DuckDB numbers those whose name is taken.

    >>> names_after_star(["oid", "oid_1", "key_1"], ["oid", "key_1"])
    ['oid', 'oid', 'key_1']
    """
    found: list[str] = []
    for name in given:
        base, _, number = name.rpartition("_")
        is_numbered = number.isdigit() and base in found and name not in known
        found.append(base if is_numbered else name)
    return found


def column_named(node: exp.Expr) -> str:
    """The name of one column."""
    if isinstance(node, exp.Alias):
        return _folded(node.args["alias"])
    return _called(node) or _called_weakly(node) or _UNNAMED


def _folded(name: exp.Expr) -> str:
    is_quoted = isinstance(name, exp.Identifier) and bool(name.args.get("quoted"))
    return name.name if is_quoted else name.name.lower()


def _called(node: exp.Expr) -> str | None:
    """The name of a column, a function, or what is a cast of one."""
    while isinstance(node, exp.Cast | exp.Paren | exp.Collate | exp.Bracket):
        node = node.this
    if isinstance(node, exp.Dot):
        return _called(node.expression)
    if isinstance(node, exp.Subquery):
        (first, *_) = node.this.selects or [None]
        return None if first is None or first.is_star else column_named(first)
    if isinstance(node, exp.Column):
        return _folded(node.this)
    if isinstance(node, exp.Identifier):
        return _folded(node)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return _called(default) if isinstance(default, exp.Expr) else None
    return _called_function(node)


def _called_function(node: exp.Expr) -> str | None:
    kind = type(node).__name__
    if kind in FACT_NODES:
        return FACT_NODES[kind]
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if kind in _SPOKEN:
        return _SPOKEN[kind]
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return str(node.sql_name()).lower()
    return None


def _called_weakly(node: exp.Expr) -> str | None:
    """The type of a cast of what has no name, and ``case``."""
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Cast):
        kind = type_name(node.args["to"])
        return _SHORT.get(kind, kind)
    return None
