"""Writes COUNT and SUM of an expression as products of summands and conditions.

A product of level arrays is a term of a linear query: one array for each group of columns that the
expression ties together.
"""

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import CategoryAxis, DateAxis, TimestampAxis
from cube.query import (
    COEFFICIENT_MAX,
    N_FACTOR_CELLS_MAX,
    N_TERMS_MAX,
    Factor,
    LinearQuery,
    Scope,
    Term,
)
from cube.refusals import TooLarge, UnsupportedSql
from cube.schema import Schema
from planner.domain import CAP_IT, Allowance, LevelArray, columns_of, number_of, spread
from planner.sql import (
    Age,
    DateBin,
    TimeBucket,
    constant_value,
    copy_of,
    divided_by_zero,
    is_written_whole,
    position,
    shown,
)

N_SHARED_CELLS_MAX = 2**10  # a larger factor is rarely seen again, and takes long to compare
N_CANCELLING_CELLS_MAX = 2**16  # up to here a query is checked for terms that cancel everywhere

# Predicates that many statements share are one object, so that results computed for it can be
# reused. Weak references: they live as long as plans and the history do. The key includes the
# shape, which the bytes do not.
_FACTORS: WeakValueDictionary[tuple[Scope, tuple[int, ...], bytes], Factor] = WeakValueDictionary()


def check_size(axes: Scope, schema: Schema) -> None:
    """Raise TooLarge if the columns have too many combinations of levels to be tied together."""
    n_cells = schema.n_cells(axes)
    if n_cells > N_FACTOR_CELLS_MAX:
        raise TooLarge(
            f"Conditions combine {', '.join(axes)}: they have {n_cells} combinations of levels; "
            f"{N_FACTOR_CELLS_MAX} are allowed.",
            hint="Use separate conditions on the columns, joined by AND.",
        )


def connected(scopes: Sequence[Scope]) -> list[list[int]]:
    """Positions of scopes, grouped so that only scopes of one group share axes.

    >>> connected([("a",), ("b",), ("a", "c"), ("b", "d")])
    [[0, 2], [1, 3]]
    """
    groups: list[tuple[set[str], list[int]]] = []
    for place, scope in enumerate(scopes):
        touching = [group for group in groups if not group[0].isdisjoint(scope)]
        axes = set(scope).union(*(group[0] for group in touching))
        members = sorted([place, *(member for group in touching for member in group[1])])
        groups = [group for group in groups if group not in touching]
        groups.append((axes, members))
    return sorted(members for _, members in groups)


def multiplied(arrays: Sequence[LevelArray], schema: Schema, allowance: Allowance) -> LevelArray:
    """The product of arrays over all their axes.

    Raises
    ------
    TooLarge
        If there are too many combinations of levels, here or in the statement.
    UnsupportedSql
        If a product may pass 2**40.
    """
    if len(arrays) == 1:
        return arrays[0]
    axes = tuple(sorted({name for array in arrays for name in array.axes}))
    check_size(axes, schema)
    allowance.cells(schema.n_cells(axes))
    if math.prod(_bound(array.values) for array in arrays) > COEFFICIENT_MAX:
        raise UnsupportedSql(
            "A product in SUM has values beyond 2**40, which cannot be summed exactly.", hint=CAP_IT
        )
    spreads = [spread(array.values, array.axes, axes) for array in arrays]
    return LevelArray(axes, reduce(operator.mul, spreads))


def independent(
    arrays: Sequence[LevelArray], schema: Schema, allowance: Allowance
) -> list[LevelArray]:
    """Arrays with the same product as the given ones; no two of them share an axis."""
    groups = connected([array.axes for array in arrays])
    return [multiplied([arrays[member] for member in group], schema, allowance) for group in groups]


def product_term(
    scale: Fraction, arrays: Sequence[LevelArray], schema: Schema, allowance: Allowance
) -> Term:
    """``scale`` times the product of arrays."""
    factors: list[Factor] = []
    for array in independent(arrays, schema, allowance):
        if array.axes:
            factors.append(_factor(array))
        else:
            scale *= int(array.values)
    return Term(scale, tuple(factors))


# What many levels are evaluated to once is a few pieces from then on.
_OF_ARRAY: WeakKeyDictionary[LevelArray, Factor] = WeakKeyDictionary()


def _factor(array: LevelArray) -> Factor:
    if array.values.size > N_SHARED_CELLS_MAX:
        found = _OF_ARRAY.get(array)
        if found is None:
            found = _OF_ARRAY[array] = Factor(array.axes, array.values)
        return found
    key = (array.axes, array.values.shape, array.values.tobytes())
    known = _FACTORS.get(key)
    if known is None:
        known = _FACTORS[key] = Factor(array.axes, array.values)
    return known


def merged_query(terms: Iterable[Term], constant: Fraction, schema: Schema) -> LinearQuery:
    """The sum of terms: equal products are added up, and cancelling terms are removed.

    Raises
    ------
    TooLarge
        If more than `N_TERMS_MAX` different terms remain.
    """
    merged: dict[tuple[tuple[Scope, bytes], ...], Term] = {}
    for term in terms:
        key = tuple((factor.axes, factor.content) for factor in term.factors)
        known = merged.get(key)
        merged[key] = term if known is None else Term(known.scale + term.scale, term.factors)
    kept = tuple(term for term in merged.values() if term.scale != 0)
    if len(kept) > N_TERMS_MAX:
        raise TooLarge(
            f"The answer is a sum of {len(kept)} different terms; {N_TERMS_MAX} are allowed.",
            hint="Ask for its parts as separate columns.",
        )
    query = LinearQuery(kept, constant)
    return LinearQuery((), constant) if _cancels(query, schema) else query


def _cancels(query: LinearQuery, schema: Schema) -> bool:
    """Whether several terms add up to zero on every cell (a total minus all of its parts).

    Decided exactly for small scopes, and not claimed for others.
    """
    axes = query.scope
    if len(query.terms) < 2 or schema.n_cells(axes) > N_CANCELLING_CELLS_MAX:  # noqa: PLR2004 - a sum
        return False
    row, _ = query.primitive()
    if row.bound > 2**62:  # beyond it int64 sums could wrap round; such a query is refused later
        return False
    total = np.zeros(schema.sizes(axes), dtype=np.int64)
    for term in row.terms:
        product = np.full([1] * len(axes), int(term.scale), dtype=np.int64)
        for factor in term.factors:
            product = product * spread(factor.values, factor.axes, axes)
        total += product
    return not total.any()


def _bound(values: NDArray[np.int64]) -> int:
    return max(abs(int(values.min())), abs(int(values.max())))


_OF_TIME = (
    exp.Interval,
    exp.TimestampTrunc,
    exp.LastDay,
    exp.DateFromParts,
    Age,
    TimeBucket,
    DateBin,
)
_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})
_TIMES = frozenset({exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.INTERVAL})

N_MULTIPLE_MAX = 2**20  # of a column beside others; sums of larger ones pass 2**40 on any column


@dataclass(frozen=True, slots=True)
class Product:
    """``scale`` times the product of summands, over records for which every condition holds."""

    scale: Fraction
    summands: tuple[exp.Expr, ...]
    conditions: tuple[exp.Expr, ...]


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that are joined by AND, from left to right."""
    pending = [condition]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            yield node


def counted(
    expression: exp.Expr, scale: Fraction, conditions: tuple[exp.Expr, ...], schema: Schema
) -> Product:
    """COUNT(expression): the number of records for which it is not NULL."""
    expression = expression.unnest()
    branch = _single_branch(expression, empty_is_zero=False)
    if branch is not None:
        holds, value = branch
        return counted(value, scale, (*conditions, *conjuncts(holds)), schema)
    if isinstance(expression, exp.Literal | exp.Boolean | exp.Star):
        return Product(scale, (), conditions)
    return Product(scale, (), (*conditions, *known_where(expression, schema)))


def known_where(expression: exp.Expr, schema: Schema) -> list[exp.Expr]:
    """Conditions that hold together exactly where an expression is not NULL.

    One on each operand of arithmetic, since a condition on each is cheaper than one on all
    combinations of their levels.
    """
    node = expression.unnest()
    if isinstance(node, exp.Literal | exp.Boolean | exp.Interval):
        return []
    operands = _strict_operands(node, schema)
    # What has no columns is computed whole: it may have no value, which operands do not say.
    if operands is None or node.find(exp.Column) is None:
        return [_is_not_null(node)]
    found = [condition for operand in operands for condition in known_where(operand, schema)]
    return list(dict.fromkeys(found))


def _strict_operands(node: exp.Expr, schema: Schema) -> list[exp.Expr] | None:
    """What a node is NULL without, and with always has a value; None where that is not known."""
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return [node.this, node.expression]
    if isinstance(node, exp.Div):
        return [node.this] if constant_value(node.expression) else None
    if isinstance(node, exp.Extract):
        return [node.expression]
    if isinstance(node, exp.Neg | exp.Abs | exp.Floor | exp.Ceil):
        return [node.this]
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        # A text may be no value of the type: the cast has none there.
        return [node.this] if _is_of_numbers(node.this.unnest(), schema) else None
    return None


def _is_of_numbers(node: exp.Expr, schema: Schema) -> bool:
    """Whether a node is surely no text: a column of none, or computed with numbers."""
    if isinstance(node, exp.Column):
        return not isinstance(schema.by_name[node.name], CategoryAxis)
    if isinstance(node, exp.Cast):
        return node.to.this not in exp.DataType.TEXT_TYPES
    return _strict_operands(node, schema) is not None


def summed(
    expression: exp.Expr, scale: Fraction, conditions: tuple[exp.Expr, ...], schema: Schema
) -> list[Product]:
    """SUM(expression), in which a record counts 0 if the expression is NULL."""
    expression = expression.unnest()
    constant = constant_value(expression)
    if constant is not None:
        return [Product(scale * constant, (), conditions)]
    branch = _single_branch(expression, empty_is_zero=True)
    if branch is not None:
        holds, value = branch
        return summed(value, scale, (*conditions, *conjuncts(holds)), schema)
    if isinstance(expression, exp.Mul | exp.Div):
        apart = _factors_apart(expression, scale, conditions, schema)
        if apart is not None:
            return apart
    parts = addends_apart(expression, schema)
    if len(parts) == 1:
        (part,) = parts
        if part.value == expression:
            return [Product(scale, (expression,), conditions)]
        return summed(part.value, scale * part.scale, conditions, schema)
    products = []
    for part in parts:
        # The whole is NULL where any part is NULL, so each part counts only where the others are
        # not.
        others = [other for other in parts if other is not part]
        beside = [one for other in others for one in _known_beside(other.value, schema)]
        products += summed(part.value, scale * part.scale, (*conditions, *beside), schema)
    return products


def _known_beside(expression: exp.Expr, schema: Schema) -> list[exp.Expr]:
    """The conditions that an expression is not NULL, without those that hold on every level."""
    every = known_where(expression, schema)
    return [one for one in every if _may_be_null(one.this.this, schema)]


@dataclass(frozen=True, slots=True)
class Addend:
    """``scale * value``."""

    scale: Fraction
    value: exp.Expr


def addends_apart(expression: exp.Expr, schema: Schema) -> list[Addend]:
    """Addends over different columns that add up to `expression`; constants go with the first.

    >>> from sqlglot import parse_one
    >>> from cube.axis import IntegerAxis
    >>> axes = tuple(IntegerAxis(name=name, low=0, high=9) for name in "ab")
    >>> schema = Schema(table="t", axes=axes, n_records_max=100)
    >>> [f"{one.scale} ({one.value.sql()})" for one in
    ...  addends_apart(parse_one("a - b / 4 + 2 * a + 1"), schema)]
    ['1 (a + a * 2 + 1)', '-1 (b / 4)']
    >>> [f"{one.scale} ({one.value.sql()})" for one in
    ...  addends_apart(parse_one("(a * 1.5 + b) / 2.0 - 3"), schema)]
    ['3/4 (a - 4)', '1/2 (b)']
    """
    terms: list[Addend] = []
    constant = Fraction(0)
    for addend in _addends(expression, Fraction(1), schema):
        value = constant_value(addend.value)
        if value is None:
            terms.append(addend)
        else:
            constant += addend.scale * value
    if not terms or any(term.scale == 0 for term in terms):
        return [Addend(Fraction(1), expression)]
    groups = connected([columns_of(term.value) for term in terms])
    parts = []
    for group in groups:
        members = [terms[member] for member in group]
        part = _together(members, constant)
        if part is None and len(members) == 1:
            part = members[0]
            parts.append(Addend(constant, exp.Literal.number(1)))
        if part is None:
            return [Addend(Fraction(1), expression)]
        parts.append(part)
        constant = Fraction(0)
    return parts


def _together(terms: Sequence[Addend], constant: Fraction) -> Addend | None:
    """The sum of some terms and a constant, as one value in whole multiples of the terms.

    None if the multiples are so large that the sum is better evaluated as it was written.
    """
    numbers = [*(term.scale for term in terms), constant]
    denominator = math.lcm(*(number.denominator for number in numbers))
    common = math.gcd(*(int(number * denominator) for number in numbers))
    scale = Fraction(common, denominator)
    if all(term.scale < 0 for term in terms):
        scale = -scale
    whole = [int(number / scale) for number in numbers]
    if len(terms) == 1 and not constant:
        return Addend(scale, terms[0].value)
    if max(map(abs, whole)) > N_MULTIPLE_MAX:
        return None
    value: exp.Expr | None = None
    for by, term in zip(whole, terms, strict=False):
        value = _plus(value, by, exp.paren(term.value) if _is_sum(term.value) else term.value)
    if whole[-1] and value is not None:
        value = _plus(value, 1 if whole[-1] > 0 else -1, exp.Literal.number(abs(whole[-1])))
    return None if value is None else Addend(scale, value)


def _is_sum(node: exp.Expr) -> bool:
    return isinstance(node, exp.Binary)


def _plus(before: exp.Expr | None, by: int, value: exp.Expr) -> exp.Expr:
    """What stands before, plus a multiple of a value."""
    multiple: exp.Expr = copy_of(value)
    if abs(by) != 1:
        multiple = exp.Mul(this=multiple, expression=exp.Literal.number(abs(by)))
    if before is None:
        return multiple if by > 0 else exp.Neg(this=exp.paren(multiple, copy=False))
    kind = exp.Add if by > 0 else exp.Sub
    return kind(this=before, expression=multiple)


def _addends(expression: exp.Expr, scale: Fraction, schema: Schema) -> Iterator[Addend]:
    """The terms that add up to ``scale * expression``; constants are taken out of products."""
    node = expression.unnest()
    number = number_of(node) if isinstance(node, exp.Cast) else None
    if number is not None:
        yield Addend(scale * number.coefficients[0], exp.Literal.number(1))
    elif isinstance(node, exp.Neg) and not _is_of_time(node.this, schema):
        yield from _addends(node.this, -scale, schema)
    elif isinstance(node, exp.Sub) and (days := _days_apart(node, schema)) is not None:
        later, earlier, between = days
        yield Addend(scale, later)
        yield Addend(-scale, earlier)
        yield Addend(scale * between, exp.Literal.number(1))
    elif isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div) and not any(
        _is_of_time(operand, schema) for operand in (node.this, node.expression)
    ):
        if isinstance(node, exp.Add | exp.Sub):
            yield from _addends(node.this, scale, schema)
            yield from _addends(
                node.expression, -scale if isinstance(node, exp.Sub) else scale, schema
            )
            return
        apart = times_constant(node, schema)
        if apart is None:
            yield Addend(scale, node)
        else:
            yield from _addends(apart[0], scale * apart[1], schema)
    elif isinstance(node, exp.Cast) and is_real_cast(node) and _number_kind(node.this, schema):
        yield from _addends(node.this, scale, schema)
    else:
        yield Addend(scale, node)


def times_constant(node: exp.Mul | exp.Div, schema: Schema) -> tuple[exp.Expr, Fraction] | None:
    """The other factor, and the constant that a product or quotient multiplies it with.

    None if there is no constant, or if the quotient of whole numbers truncates.
    """
    by = constant_value(node.expression)
    if isinstance(node, exp.Div):
        if by == 0:
            raise divided_by_zero(node)
        if by is None:
            return None
        is_real = not is_written_whole(node.expression) or _number_kind(node.this, schema) == "real"
        return (node.this, 1 / by) if is_real else None
    if by is not None:
        return node.this, by
    by = constant_value(node.this)
    return None if by is None else (node.expression, by)


def is_real_cast(node: exp.Cast) -> bool:
    """Whether a cast is to a type that holds every number."""
    return node.to.this in _REAL_TYPES and not node.to.expressions


def _number_kind(expression: exp.Expr, schema: Schema) -> str | None:
    """Whether arithmetic is ``real`` or ``whole`` in SQL; None where that is not known."""
    node = expression.unnest()
    kind: str | None = None
    match node:
        case exp.Column():
            kind = {"BIGINT": "whole", "DOUBLE": "real"}.get(schema.by_name[node.name].sql_type)
        case exp.Literal():
            kind = None if node.is_string else "whole" if node.name.isdigit() else "real"
        case exp.Neg():
            kind = _number_kind(node.this, schema)
        case exp.Cast():
            kind = "real" if node.to.this in _REAL_TYPES else None
        case exp.Sub() if _is_days(node, schema):
            kind = "whole"
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            kinds = {_number_kind(one, schema) for one in (node.this, node.expression)}
            kind = None if None in kinds else "real" if "real" in kinds else "whole"
    return kind


def _is_days(difference: exp.Sub, schema: Schema) -> bool:
    """Whether a difference is of two days, and so a whole number."""
    return all(_is_day(one, schema) for one in (difference.this, difference.expression))


def _is_day(expression: exp.Expr, schema: Schema) -> bool:
    node = expression.unnest()
    if isinstance(node, exp.Column):
        return isinstance(schema.by_name[node.name], DateAxis)
    return isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE


def _days_apart(difference: exp.Sub, schema: Schema) -> tuple[exp.Expr, exp.Expr, int] | None:
    """The days of two columns from their middle days, and those between these; None for others.

    So a sum of differences is two rows of numbers, not one over all pairs of days; and both are as
    small as they can be, since their largest values add up in the bound of the cost.
    """
    columns = [difference.this.unnest(), difference.expression.unnest()]
    if not all(isinstance(one, exp.Column) for one in columns):
        return None
    axes = [schema.by_name[one.name] for one in columns]
    if axes[0] is axes[1]:
        return None
    middles = [axis.low + (axis.high - axis.low) / 2 for axis in axes if isinstance(axis, DateAxis)]
    if len(middles) < len(columns):
        return None
    later, earlier = (
        exp.Sub(
            this=copy_of(column),
            expression=exp.cast(exp.Literal.string(middle.isoformat()), exp.DType.DATE),
        )
        for column, middle in zip(columns, middles, strict=True)
    )
    return later, earlier, (middles[0] - middles[1]).days


def _is_of_time(expression: exp.Expr, schema: Schema) -> bool:
    """Whether an expression is a day, a moment or an interval: those do not add up like numbers."""
    node = expression.unnest()
    if isinstance(node, exp.Column):
        return isinstance(schema.by_name[node.name], DateAxis | TimestampAxis)
    if isinstance(node, exp.Cast):
        return node.to.this in _TIMES
    if isinstance(node, exp.Sub):  # the difference of two days is a number
        return _is_of_time(node.this, schema) and not _is_of_time(node.expression, schema)
    if isinstance(node, exp.Add | exp.Coalesce | exp.Greatest | exp.Least | exp.Nullif):
        return any(_is_of_time(part, schema) for part in node.iter_expressions())
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        return any(_is_of_time(branch, schema) for branch in branches)
    return isinstance(node, _OF_TIME)


def _factors_apart(
    product: exp.Mul | exp.Div, scale: Fraction, conditions: tuple[exp.Expr, ...], schema: Schema
) -> list[Product] | None:
    """A product with a constant, or of expressions over different columns; None if it is neither.

    A product is NULL where a factor is, and a summand that is NULL counts 0: no condition is lost.
    """
    left, right = product.this, product.expression
    apart = times_constant(product, schema)
    if apart is not None:
        return summed(apart[0], scale * apart[1], conditions, schema)
    if isinstance(product, exp.Div) or not _share_nothing(product):
        return None
    lefts, rights = summed(left, scale, conditions, schema), summed(right, Fraction(1), (), schema)
    if len(lefts) * len(rights) > N_TERMS_MAX:
        raise TooLarge(
            f"{shown(product)} expands to a sum of {len(lefts) * len(rights)} products of "
            f"columns; {N_TERMS_MAX} are allowed.",
            hint="Ask for its parts as separate columns.",
            position=position(product),
        )
    return [
        Product(
            one.scale * other.scale,
            one.summands + other.summands,
            one.conditions + other.conditions,
        )
        for one in lefts
        for other in rights
    ]


def _share_nothing(binary: exp.Binary) -> bool:
    """Whether both sides mention columns, and none in common."""
    left, right = set(columns_of(binary.this)), set(columns_of(binary.expression))
    return bool(left) and bool(right) and left.isdisjoint(right)


def _single_branch(case: exp.Expr, *, empty_is_zero: bool) -> tuple[exp.Expr, exp.Expr] | None:
    """Condition and value of ``CASE WHEN .. THEN .. END`` if otherwise it contributes nothing."""
    if not isinstance(case, exp.Case) or case.this is not None or len(case.args["ifs"]) != 1:
        return None
    otherwise = case.args.get("default")
    nothing = otherwise is None or isinstance(otherwise.unnest(), exp.Null)
    if otherwise is not None and empty_is_zero:
        nothing = nothing or constant_value(otherwise) == 0
    branch = case.args["ifs"][0]
    return (branch.this, branch.args["true"]) if nothing else None


def _is_not_null(expression: exp.Expr) -> exp.Expr:
    return exp.Not(
        this=exp.Is(this=exp.paren(copy_of(expression), copy=False), expression=exp.null())
    )


def _may_be_null(expression: exp.Expr, schema: Schema) -> bool:
    """False only if the expression is surely not NULL on any level."""
    expression = expression.unnest()
    if isinstance(expression, exp.Literal | exp.Boolean):
        return False
    if isinstance(expression, exp.Column):
        return schema.by_name[expression.name].null
    operands = _strict_operands(expression, schema)
    return operands is None or any(_may_be_null(one, schema) for one in operands)
