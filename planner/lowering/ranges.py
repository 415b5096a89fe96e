"""The public range of a formula's true value, and the answers that it divides by.

Interval arithmetic from what the declaration says: an average lies among the values averaged, the
share of a part in a whole between 0 and 1. A formula's answer and its interval are cut to the
range. What has no range here is not cut; sums and counts never are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from cube.encoding import fingerprint
from cube.query import LinearQuery, QueryBlock
from inference.scaling import coefficient_range
from planner.lowering.linear import is_linear, linear_query
from planner.lowering.parts import PartBuilder
from planner.sql.exact_number import constant_value
from planner.sql.nodes import nodes_of

Range: TypeAlias = tuple[float, float]
UNBOUNDED: Range = (-math.inf, math.inf)

_COUNT_ALL = exp.Count(this=exp.Star(), big_int=True)
_SAME_VALUE = (exp.Paren, exp.Nullif, exp.Cast)  # NULL, or the value of their first argument


def public_range(node: exp.Expr, known: Callable[[exp.Expr], Range | None]) -> Range:
    """The public range of an expression; `known` says what it knows of parts of it."""
    constant = constant_value(node)
    if constant is not None:
        return float(constant), float(constant)
    found = known(node)
    if found is not None:
        return found
    if _is_same_number(node):
        return public_range(node.this, known)
    arguments = [one for one in (node.this, *node.expressions) if isinstance(one, exp.Expr)]
    arithmetic = _ARITHMETIC.get(type(node))
    if arithmetic is None:
        return UNBOUNDED
    if isinstance(node, exp.Binary):
        arguments.append(node.expression)
    return arithmetic(node, [public_range(one, known) for one in arguments])


def _is_same_number(node: exp.Expr) -> bool:
    is_widened = isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
    return is_widened or isinstance(node, exp.Paren | exp.Nullif)


def share_range(node: exp.Div, part: PartBuilder) -> Range | None:
    """The range of a linear answer divided by a whole that it is of; None if it is no such share.

    The whole counts all records of the SELECT, or is what the part sums, over more records. Of all
    groups, it counts records that are not in the item's group and add nothing to the item.
    """
    whole, item = node.expression, node.this.unnest()
    while isinstance(whole, _SAME_VALUE):
        whole = whole.this
    is_of_all_groups = isinstance(whole, exp.Window) and isinstance(whole.this, exp.Sum)
    if is_of_all_groups:
        whole = whole.this.this.unnest()
    if not (is_linear(item) and is_linear(whole)):
        return None
    of_item, of_whole = _query(item, part), _query(whole, part)
    if of_item.constant or of_whole.constant or coefficient_range(of_whole)[0] < 0:
        return None
    same = _ratio(_query(_without_filters(item), part), of_whole)
    if same is not None and item.find(exp.Add, exp.Sub) is None:
        return min(same, 0.0), max(same, 0.0)
    of_all = _ratio(of_whole, _query(_COUNT_ALL, part))
    if of_all is None:
        return None
    low, high = coefficient_range(of_item)
    if is_of_all_groups:
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    return float(low) / of_all, float(high) / of_all


def divisors(formula: exp.Expr, uses: Sequence[int]) -> tuple[int, ...]:
    """The aggregates, of those that a formula uses, by which it divides."""
    found: list[int] = []
    for division in nodes_of(formula, exp.Div):
        divisor = division.expression
        while isinstance(divisor, _SAME_VALUE):
            divisor = divisor.this
        if isinstance(divisor, exp.Column):
            found.append(uses[int(divisor.name.removeprefix("a"))])
    return tuple(dict.fromkeys(found))


def _query(item: exp.Expr, part: PartBuilder) -> LinearQuery:
    return linear_query(item, part.conditions, part.domain)


def _without_filters(item: exp.Expr) -> exp.Expr:
    """The item over all records of the SELECT."""
    changed: exp.Expr = item.transform(lambda one: one.this if isinstance(one, exp.Filter) else one)
    return changed


def _ratio(item: LinearQuery, whole: LinearQuery) -> float | None:
    """The number that one query is of the other; None if it is no multiple of it."""
    if item.is_constant or whole.is_constant:
        return None
    row, times = QueryBlock(item).primitive
    other, by = QueryBlock(whole).primitive
    return float(times / by) if fingerprint(row) == fingerprint(other) else None


def _negated(_: exp.Expr, ranges: Sequence[Range]) -> Range:
    ((low, high),) = ranges
    return -high, -low


def _either(_: exp.Expr, ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _combined(node: exp.Expr, ranges: Sequence[Range]) -> Range:
    """The range of a sum, difference, product or quotient of two ranges."""
    (low, high), (other_low, other_high) = ranges
    if not all(map(math.isfinite, (low, high, other_low, other_high))):
        return UNBOUNDED
    ends = [(one, other) for one in (low, high) for other in (other_low, other_high)]
    match node:
        case exp.Add():
            results = [one + other for one, other in ends]
        case exp.Sub():
            results = [one - other for one, other in ends]
        case exp.Mul():
            results = [one * other for one, other in ends]
        case _ if other_low <= 0 <= other_high:
            return UNBOUNDED
        case _:
            results = [one / other for one, other in ends]
    return min(results), max(results)


def _rounded(node: exp.Expr, ranges: Sequence[Range]) -> Range:
    """The range of a rounded value: whole units of its last digit, rounded outwards."""
    digits = node.args.get("decimals")
    places = constant_value(digits) if digits is not None else 0
    ((low, high),) = ranges
    if places is None or not (math.isfinite(low) and math.isfinite(high)):
        return UNBOUNDED
    unit = 10.0 ** int(places)
    return math.floor(low * unit) / unit, math.ceil(high * unit) / unit


_ARITHMETIC: Final[Mapping[type[exp.Expr], Callable[[exp.Expr, Sequence[Range]], Range]]] = {
    exp.Neg: _negated,
    exp.Coalesce: _either,
    exp.Round: _rounded,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), _combined),
}
