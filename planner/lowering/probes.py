"""Statements by which clients only learn the columns of a result: results without rows.

``LIMIT 0`` and ``WHERE 1 = 0`` around private rows have a typed, empty answer, which is public.
"""

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from planner.lowering.rows import Rows
from planner.lowering.summands import conjuncts
from planner.sql.exact_number import constant_value
from planner.sql.names import column_name
from planner.sql.nodes import aggregates_in

_COMPARISONS: dict[type[exp.Expr], Callable[[Fraction, Fraction], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.GT: operator.gt,
}


def is_probe(select: exp.Query) -> bool:
    """Whether a SELECT has no rows, by its own text: LIMIT 0, or a WHERE that is plainly false."""
    if has_limit_zero(select):
        return True
    where = select.args.get("where")
    return where is not None and any(map(_is_false, conjuncts(where.this)))


def gives_no_rows(query: exp.Query) -> bool:
    """Whether a statement's result has no rows, by its own text."""
    if has_limit_zero(query):
        return True
    if not (isinstance(query, exp.Select) and is_probe(query)):
        return False
    return not (query.args.get("group") or query.args.get("having") or aggregates_in(query))


def has_limit_zero(query: exp.Query) -> bool:
    """Whether a query has LIMIT 0."""
    limit = query.args.get("limit")
    if not isinstance(limit, exp.Limit) or limit.expression is None:
        return False
    return constant_value(limit.expression) == 0


def shown_columns(item: exp.Expr, rows: Rows) -> Iterator[tuple[str, exp.Expr]]:
    """Names and meanings of what one item of a SELECT list shows of private rows."""
    if isinstance(item, exp.Star):
        yield from rows.every_column()
    elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        yield from rows.every_column(item.table)
    else:
        yield column_name(item), rows.resolved(item.unalias())


def empty_rows(select: exp.Select, rows: Rows) -> exp.Select:
    """A SELECT of no rows with the columns that `select` has."""
    columns = []
    for item in select.expressions:
        for name, meaning in shown_columns(item, rows):
            kind = exp.DType.DOUBLE
            if isinstance(meaning.unnest(), exp.Column):
                sql_type = rows.schema.by_name[meaning.unnest().name].sql_type
                kind = exp.DType[sql_type]
            columns.append(exp.alias_(exp.cast(exp.null(), kind), name, quoted=True))
    return exp.select(*columns).where(exp.false())


def _is_false(condition: exp.Expr) -> bool:
    condition = condition.unnest()
    if isinstance(condition, exp.Boolean):
        return not condition.this
    compare = _COMPARISONS.get(type(condition))
    if compare is None:
        return False
    one, other = constant_value(condition.this), constant_value(condition.expression)
    return one is not None and other is not None and not compare(one, other)
