"""Sums of polynomials of one number column: their coefficients, and their exact values on levels.

``SUM(revenue * 1.2 - 5)``, an average's ``x - c`` and a variance's ``(x - c) * (x - c)`` are
polynomials, as are the days between a column and a constant day. Their values are exact whatever
the column's step, and found without the scratchpad.
Division of whole numbers, which truncates, and casts that round are none.
"""

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest
from math import lcm

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import Axis, DateAxis
from planner.domain.exact_levels import MULTIPLE_MAX, day_numbers, exact_levels
from planner.sql.exact_number import constant_value, exact_number, is_written_whole

DEGREE_MAX = 4
_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})
_WRITTEN_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SIGNED = re.compile(r"(?P<minus>-?)(?P<number>[0-9][0-9.]*(?:e[+-]?[0-9]+)?)")


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial of a column.

    Parameters
    ----------
    coefficients : tuple of Fraction
        That of the constant first.
    is_whole : bool
        Whether SQL holds it in a whole-number type, whose division truncates.
    """

    coefficients: tuple[Fraction, ...]
    is_whole: bool


def polynomial_of(expression: exp.Expr, axis: Axis) -> Polynomial | None:
    """An expression as a polynomial of its only column; None if it is anything else."""
    node = expression.unnest()
    if isinstance(axis, DateAxis) and isinstance(node, exp.Column | exp.Sub):
        days = _days(node, axis) if isinstance(node, exp.Sub) else None
        if days is not None or isinstance(node, exp.Column):
            return days  # a day by itself is no number
    if isinstance(node, exp.Column):
        return Polynomial((Fraction(0), Fraction(1)), axis.sql_type == "BIGINT")
    constant = number_of(node)
    if constant is not None:
        return constant
    if isinstance(node, exp.Cast):
        return _cast(node, axis)
    sides = [node.this, node.expression] if type(node) in _OPERATIONS else []
    if isinstance(node, exp.Neg):
        node, sides = exp.Mul(), [exp.Literal.number(-1), node.this]
    found = [polynomial_of(side, axis) for side in sides]
    polynomials = [one for one in found if one is not None]
    if not polynomials or len(polynomials) < len(sides):
        return None
    return _OPERATIONS[type(node)](*polynomials)


def on_levels(polynomial: Polynomial, axis: Axis) -> tuple[NDArray[np.int64], Fraction] | None:
    """Whole numbers and a unit; their product is the value on each level, and 0 at NULL.

    None if the column has no exact levels, or the whole numbers would pass 2**62.
    """
    levels = day_numbers(axis) if isinstance(axis, DateAxis) else exact_levels(axis)
    if levels is None:
        return None
    by_multiple = [
        coefficient * levels.unit**power
        for power, coefficient in enumerate(polynomial.coefficients)
    ]
    denominator = lcm(*(one.denominator for one in by_multiple))
    whole = [int(one * denominator) for one in by_multiple]
    largest = max(int(levels.multiples.max()), -int(levels.multiples.min()))
    if sum(abs(one) * largest**power for power, one in enumerate(whole)) >= MULTIPLE_MAX:
        return None
    values = np.zeros(levels.multiples.size, dtype=np.int64)
    for coefficient in reversed(whole):
        values = values * levels.multiples + coefficient
    values[levels.null] = 0
    common = int(np.gcd.reduce(values)) or 1
    return values // common, Fraction(common, denominator)


def number_of(node: exp.Expr) -> Polynomial | None:
    """A constant: a number, or one that planning cast from its text; None for anything else."""
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DOUBLE:
        literal = node.this.unnest()
        match = _SIGNED.fullmatch(literal.name) if isinstance(literal, exp.Literal) else None
        if match is None:
            return None
        magnitude = exact_number(match["number"], node)
        return Polynomial((-magnitude if match["minus"] else magnitude,), is_whole=False)
    value = constant_value(node)
    return None if value is None else Polynomial((value,), is_written_whole(node))


def _days(difference: exp.Sub, axis: DateAxis) -> Polynomial | None:
    """The days between a column and a constant day, by the column's days from its first."""
    sides = [difference.this.unnest(), difference.expression.unnest()]
    is_column = [isinstance(side, exp.Column) for side in sides]
    if sum(is_column) != 1:
        return None
    day = _day(sides[is_column.index(False)])
    if day is None:
        return None
    between = Fraction((axis.low - day).days)
    sign = 1 if is_column[0] else -1
    return Polynomial((sign * between, Fraction(sign)), is_whole=True)


def _day(node: exp.Expr) -> dt.date | None:
    """A constant day; None for anything else."""
    if not isinstance(node, exp.Cast) or node.to.this != exp.DType.DATE:
        return None
    literal = node.this.unnest()
    if not isinstance(literal, exp.Literal) or not _WRITTEN_DAY.fullmatch(literal.name):
        return None
    try:
        return dt.date.fromisoformat(literal.name)
    except ValueError:
        return None  # which is refused where it is evaluated


def _cast(node: exp.Cast, axis: Axis) -> Polynomial | None:
    """A cast to a type that holds every value: nothing is rounded."""
    inner = polynomial_of(node.this, axis)
    if inner is None or node.to.expressions:
        return None
    if node.to.this in _REAL_TYPES:
        return replace(inner, is_whole=False)
    return inner if inner.is_whole and node.to.this == exp.DType.BIGINT else None


def _difference(one: Polynomial, other: Polynomial) -> Polynomial:
    return _sum(one, replace(other, coefficients=tuple(-each for each in other.coefficients)))


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    pairs = zip_longest(one.coefficients, other.coefficients, fillvalue=Fraction(0))
    return Polynomial(tuple(a + b for a, b in pairs), one.is_whole and other.is_whole)


def _product(one: Polynomial, other: Polynomial) -> Polynomial | None:
    degree = len(one.coefficients) + len(other.coefficients) - 2
    if degree > DEGREE_MAX:
        return None
    coefficients = [Fraction(0)] * (degree + 1)
    for power, a in enumerate(one.coefficients):
        for other_power, b in enumerate(other.coefficients):
            coefficients[power + other_power] += a * b
    return Polynomial(tuple(coefficients), one.is_whole and other.is_whole)


def _quotient(one: Polynomial, other: Polynomial) -> Polynomial | None:
    """Divided by a constant, unless whole numbers are divided: that truncates."""
    (by, *rest) = other.coefficients
    if rest or by == 0 or (one.is_whole and other.is_whole):
        return None
    coefficients = tuple(each / by for each in one.coefficients)
    return Polynomial(coefficients, is_whole=False)


_OPERATIONS: dict[type[exp.Expr], Callable[[Polynomial, Polynomial], Polynomial | None]] = {
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: _product,
    exp.Div: _quotient,
}
