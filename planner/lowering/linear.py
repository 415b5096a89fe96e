"""SELECT items as linear queries: sums of counts and sums, times constants, plus constants.

Answers are real numbers, so ``COUNT(*) / 2`` is half the count, exactly, and a cast to a floating
or decimal type changes nothing. SUM over no records is 0 here, not NULL, as every answer is an
estimate of a number.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from cube.query import COEFFICIENT_MAX, LinearQuery, Term
from cube.refusals import UnsupportedSql
from planner.domain.domain import PublicDomain
from planner.lowering.changed_values import changed_in_sum
from planner.lowering.products import merged_query, product_term
from planner.lowering.summands import Product, conjuncts, counted, summed
from planner.sql.exact_number import constant_value, divided_by_zero
from planner.sql.messages import shown, unsupported
from planner.sql.nodes import has_node, is_unit_count

N_ANSWER_BITS_MAX = 900  # an answer must be a finite double, with room for what is computed of it
_LARGEST = 2**N_ANSWER_BITS_MAX
_FINEST = Fraction(1, _LARGEST)

_OF_GROUPS = (
    "Aggregate groups, as in STRING_AGG(c, ',') FROM (SELECT c FROM t GROUP BY c HAVING COUNT(*) > "
    "100) AS g."
)
_HINTS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.GroupConcat, _OF_GROUPS),
    (exp.ArrayAgg, _OF_GROUPS),
)
_COUNTED = (exp.Count, exp.CountIf, exp.Sum)
_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})


@dataclass(slots=True)
class _Parts:
    """The terms of a SELECT item, while it is being read."""

    products: list[Product] = field(default_factory=list)
    constant: Fraction = Fraction(0)


def linear_query(item: exp.Expr, where: tuple[exp.Expr, ...], domain: PublicDomain) -> LinearQuery:
    """The linear query of a SELECT item, over records for which all of `where` holds.

    Raises
    ------
    UnsupportedSql
        If the item is not linear in counts and sums.
    """
    parts = _Parts()
    _read(item, Fraction(1), where, domain, parts)
    terms = [_term(product, domain) for product in parts.products]
    query = merged_query(terms, parts.constant, domain.schema)
    row, _ = query.primitive()
    if row.bound > COEFFICIENT_MAX:
        raise unsupported(
            item,
            "weighs records so differently that whole weights pass 2**40",
            "Ask for its parts as separate columns.",
        )
    n_records = domain.schema.n_records_max
    largest = query.bound * n_records + abs(query.constant)
    finest = min((term.scale for term in query.terms), key=abs, default=Fraction(1))
    if largest > _LARGEST or abs(finest) < _FINEST:
        raise unsupported(
            item, "is beyond the range of floating point numbers", "Multiply and divide by less."
        )
    return query


def has_aggregate(item: exp.Expr) -> bool:
    """Whether an aggregate occurs anywhere in a SELECT item."""
    return has_node(item, exp.AggFunc)


def aggregated_twice(node: exp.Expr) -> UnsupportedSql:
    """The refusal of an aggregate inside an aggregate."""
    return unsupported(
        node,
        "aggregates an aggregate",
        "Aggregate in a subquery, and its answers in the SELECT around it.",
    )


def is_linear(item: exp.Expr) -> bool:
    """Whether an item is a linear combination of counts and sums, with at least one.

    A count or sum that is refused later counts as one here.
    """
    item = item.unnest()
    if isinstance(item, exp.Add | exp.Sub | exp.Mul):
        return _is_linear_binary(item)
    if isinstance(item, exp.Div):
        return is_linear(item.this) and constant_value(item.expression) is not None
    if isinstance(item, exp.Neg) or _changes_nothing(item):
        return is_linear(item.this)
    counted_in = item.this if isinstance(item, exp.Filter) else item
    is_distinct = isinstance(counted_in.this, exp.Distinct)
    return (
        isinstance(counted_in, _COUNTED)
        and not is_distinct
        and not any(has_aggregate(inner) for inner in counted_in.iter_expressions())
    )


def _is_linear_binary(item: exp.Binary) -> bool:
    sides = (item.this, item.expression)
    # Each side is visited once: visiting it again at every level would double the work each time.
    linear = [is_linear(side) for side in sides]
    fits = [
        known or constant_value(side) is not None for known, side in zip(linear, sides, strict=True)
    ]
    if isinstance(item, exp.Mul):
        return sum(linear) == 1 and all(fits)
    return any(linear) and all(fits)


def _read(
    node: exp.Expr,
    scale: Fraction,
    where: tuple[exp.Expr, ...],
    domain: PublicDomain,
    parts: _Parts,
) -> None:
    """Add ``scale * node`` to the parts."""
    node = node.unnest()
    constant = constant_value(node)
    if constant is not None:
        parts.constant += scale * constant
    elif isinstance(node, exp.Count | exp.CountIf | exp.Sum):
        parts.products += _aggregate(node, scale, where, domain)
    elif isinstance(node, exp.Filter) and isinstance(node.this, exp.Count | exp.CountIf | exp.Sum):
        conditions = (*where, *conjuncts(node.expression.this))
        parts.products += _aggregate(node.this, scale, conditions, domain)
    elif isinstance(node, exp.Add | exp.Sub):
        sign = 1 if isinstance(node, exp.Add) else -1
        _read(node.this, scale, where, domain, parts)
        _read(node.expression, sign * scale, where, domain, parts)
    elif isinstance(node, exp.Neg):
        _read(node.this, -scale, where, domain, parts)
    elif isinstance(node, exp.Mul | exp.Div):
        inner, by = _times_constant(node)
        _read(inner, scale * by, where, domain, parts)
    elif _changes_nothing(node):
        _read(node.this, scale, where, domain, parts)
    else:
        raise _not_linear(node)


def _aggregate(
    node: exp.Count | exp.CountIf | exp.Sum,
    scale: Fraction,
    conditions: tuple[exp.Expr, ...],
    domain: PublicDomain,
) -> list[Product]:
    expression = exp.Star() if is_unit_count(node) else node.this  # the cells are the same
    if isinstance(expression, exp.Distinct):
        raise unsupported(
            node,
            "counts values, not records, and is not linear",
            "Ask COUNT(DISTINCT x) of one column, or COUNT(DISTINCT (a, b)) of several.",
        )
    if node.expressions or not isinstance(expression, exp.Expr):
        raise unsupported(node, "takes one argument", "Say COUNT(*) to count records.")
    if has_aggregate(expression):
        raise aggregated_twice(node)
    if isinstance(node, exp.CountIf):
        return [Product(scale, (), (*conditions, *conjuncts(expression)))]
    if isinstance(node, exp.Count):
        return [counted(expression, scale, conditions, domain.schema)]
    if isinstance(expression, exp.Star):
        raise unsupported(node, "sums no column", "Say COUNT(*) to count records.")
    products = summed(expression, scale, conditions, domain.schema)
    for product in products:
        for summand in product.summands:
            if domain.is_binned(summand):
                raise unsupported(
                    node,
                    f"needs values of {shown(summand)}, of which only bins are public",
                    "Sum a CASE that gives each bin a value, or declare the column as integer.",
                )
    return products


def _times_constant(node: exp.Mul | exp.Div) -> tuple[exp.Expr, Fraction]:
    """The other operand, and the constant it is multiplied with."""
    by = constant_value(node.expression)
    if isinstance(node, exp.Div):
        if by == 0:
            raise divided_by_zero(node)
        if by is not None:
            return node.this, 1 / by
    elif by is not None:
        return node.this, by
    else:
        by = constant_value(node.this)
        if by is not None:
            return node.expression, by
    raise ValueError("a nonlinear item was read as a linear one")


def _term(product: Product, domain: PublicDomain) -> Term:
    scale = product.scale
    holds = domain.truths(product.conditions)
    arrays = list(holds)
    for summand in product.summands:
        domain.caution(changed_in_sum(summand, holds, domain.schema))
        array, unit = domain.numbers(summand, holds)
        arrays.append(array)
        scale *= unit
    return product_term(scale, arrays, domain.schema, domain.allowance)


def _changes_nothing(node: exp.Expr) -> bool:
    """Whether a node is a cast to a type that holds any answer, or COALESCE of a non-NULL value."""
    if isinstance(node, exp.Cast):
        return node.to.this in _REAL_TYPES and not node.to.expressions and has_aggregate(node)
    if isinstance(node, exp.Coalesce):
        return all(constant_value(padding) is not None for padding in node.expressions)
    return False


def _not_linear(node: exp.Expr) -> UnsupportedSql:
    aggregate = node.this if isinstance(node, exp.Filter) else node
    for kind, hint in _HINTS:
        if isinstance(aggregate, kind):
            return unsupported(node, "is not a weighted sum of records", hint)
    if has_aggregate(node):
        return unsupported(
            node,
            "is not a weighted sum of records",
            "COUNT, SUM, +, - and constants are answered; compute the rest from their answers.",
        )
    return unsupported(
        node,
        "is neither an aggregate nor a group key",
        "Ask COUNT or SUM, or put the expression into GROUP BY.",
    )
