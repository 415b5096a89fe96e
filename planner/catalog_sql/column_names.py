"""What PostgreSQL calls the columns of a SELECT that are given no name."""

from typing import Final

from sqlglot import exp

from planner.catalog_sql.nodes import type_name
from planner.catalog_sql.recognise import FACT_NODES

_SHORT: Final = {"integer": "int4", "int": "int4", "bigint": "int8", "boolean": "bool"}


def columns_named(tree: exp.Query) -> list[str | None]:
    """What PostgreSQL calls the columns of a SELECT; None for those that have an alias."""
    if not isinstance(tree, exp.Select):
        return []
    return [_named(one) for one in tree.selects]


def _named(node: exp.Expr) -> str | None:
    """The name of a column without an alias; None if it has one, or is what it is called."""
    if isinstance(node, exp.Alias | exp.Star) or (isinstance(node, exp.Column) and node.table):
        return None
    inner: exp.Expr = node
    outermost = node if isinstance(node, exp.Cast) else None
    while isinstance(inner, exp.Cast | exp.Paren | exp.Collate):
        inner = inner.this
    if isinstance(inner, exp.Literal | exp.Null | exp.Boolean) and outermost is not None:
        kind = type_name(outermost.to)
        return _SHORT.get(kind, kind)
    return _called(inner)


def _called(inner: exp.Expr) -> str:
    """The name of what is no cast."""
    if isinstance(inner, exp.Dot):
        inner = inner.expression
    if isinstance(inner, exp.Column | exp.Anonymous | exp.Identifier):
        return str(inner.name).lower()
    if type(inner).__name__ in FACT_NODES:
        return FACT_NODES[type(inner).__name__]
    if isinstance(inner, exp.Func):
        return "case" if isinstance(inner, exp.Case) else str(inner.sql_name()).lower()
    return "?column?"


def keep_names(tree: exp.Query, names: list[str | None]) -> None:
    """Give the columns of a SELECT that was written out the names that they had before."""
    if not isinstance(tree, exp.Select):
        return
    columns = list(tree.expressions)
    if len(columns) != len(names):
        return
    for column, name in zip(columns, names, strict=True):
        if name is not None and not isinstance(column, exp.Alias | exp.Star):
            column.replace(exp.alias_(column.copy(), name, quoted=True))
