"""An allowed expression as DuckDB SQL over level tables.

Columns become the level columns of the scratchpad, by place and never by name. A public table's
column becomes a function of the key. What operators and functions mean is for `planner.meaning`.
"""

from collections.abc import Callable, Mapping

from sqlglot import exp

from planner.meaning.numbers import QUOTIENT_PLACES
from planner.meaning.types import Kind, SqlType
from planner.meaning.writing import duckdb_sql, written_expression
from planner.meaning.written import Value, written
from planner.sql.nodes import PublicLookup

TypeOfColumn = Callable[[exp.Expr], SqlType]


def duckdb_text(expression: exp.Expr, relations: Mapping[str, str], type_of: TypeOfColumn) -> str:
    """The expression with each column replaced by ``<its relation>.value``.

    Parameters
    ----------
    expression : Expr
    relations : mapping
        The relation of each column.
    type_of : callable
        What a column, or a looked-up one, holds.

    Raises
    ------
    UnsupportedSql
        If something in it cannot be computed as PostgreSQL does. Nothing that is written is without
        a form in DuckDB: what writers leave as it is are comparisons, choices and constants.
    """

    def resolve(node: exp.Expr) -> Value:
        if isinstance(node, PublicLookup):
            places = ", ".join(f"{{{place}}}" for place in range(len(node.expressions)))
            found = written(node, f"{node.name}({places})", *node.expressions)
        else:
            found = written(node, f"{relations[node.name]}.value")
        return Value(found, type_of(node))

    value = written_expression(expression, resolve)
    text = duckdb_sql(value.node)
    if value.type.kind is Kind.TIMESTAMPTZ:  # instants are shown in UTC
        return f"CAST({text} AS TIMESTAMP)"
    return f"CAST({text} AS DOUBLE)" if _is_quotient(expression, value.type) else text


def _is_quotient(expression: exp.Expr, found: SqlType) -> bool:
    """Whether the value is a quotient, which is used as a double where nothing rounds it."""
    is_decimal = found.kind is Kind.NUMERIC and found.scale is not None
    return is_decimal and (
        found.scale == QUOTIENT_PLACES or isinstance(expression.unnest(), exp.Div)
    )
