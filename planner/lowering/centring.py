"""Summands less the middle of their public range, so that one record moves a sum by half of it.

``AVG(x) = c + SUM(x - c) / COUNT(x)``; squares are centred once more, in their own range.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from cube.query import Scope
from cube.schema import Schema
from planner.lowering.parts import PartBuilder
from planner.lowering.summands import addends_apart, known_where
from planner.sql.nodes import copy_of


@dataclass(frozen=True, slots=True)
class Span:
    """The public range of a summand, and the whole or binary number in its middle."""

    low: float
    high: float
    middle: exp.Expr | None  # None for 0

    @property
    def radius(self) -> float:
        """Half the width of the range."""
        return (self.high - self.low) / 2


def span_of(value: exp.Expr, part: PartBuilder) -> Span:
    """The public range of a summand where it is not NULL, under the conditions of its SELECT.

    Addends over different columns are evaluated each by itself: their ranges add up.
    """
    low = high = Fraction(0)
    units: list[Fraction] = []
    holds = part.domain.truths(part.conditions)
    for addend in addends_apart(value, part.domain.schema):
        array, unit = part.domain.numbers(addend.value, holds)
        values = array.values[_not_null(addend.value, array.axes, part.domain.schema)]
        unit *= addend.scale
        ends = (int(values.min()) * unit, int(values.max()) * unit)
        low, high = low + min(ends), high + max(ends)
        units.append(abs(unit))
    return Span(float(low), float(high), _middle(low, high, min(units)))


def _not_null(value: exp.Expr, axes: Scope, schema: Schema) -> tuple[slice, ...]:
    """The levels without the NULL, which is the last, of each column that the value needs."""
    known = {one.this.this.unnest() for one in known_where(value, schema)}
    names = {one.name for one in known if isinstance(one, exp.Column)}
    return tuple(
        slice(-1 if name in names and schema.by_name[name].null else None) for name in axes
    )


def _middle(low: Fraction, high: Fraction, unit: Fraction) -> exp.Expr | None:
    """A number in the middle of a range, or near it, that SQL writes exactly; None for 0.

    Of a range in units that no decimal writes, it is a whole number of units.
    """
    middle = (low + high) / 2
    if low.denominator == high.denominator == 1:
        return whole(math.floor(middle))
    text = repr(float(middle))
    if middle == Fraction(text):
        return exp.cast(exp.Literal.string(text), exp.DType.DOUBLE)
    near = unit * math.floor(middle / unit)
    quotient = exp.Div(
        this=exp.Literal.number(f"{abs(near.numerator)}.0"),
        expression=exp.Literal.number(near.denominator),
    )
    return exp.paren(quotient if near >= 0 else exp.Neg(this=exp.paren(quotient)), copy=False)


def centred_square(off: exp.Expr, span: Span) -> tuple[int, exp.Expr]:
    """The middle of the range of a centred value's square, and the square less that."""
    middle = math.floor(span.radius**2 / 2)
    return middle, less(exp.Mul(this=copy_of(off), expression=copy_of(off)), whole(middle))


def less(value: exp.Expr, constant: exp.Expr | None) -> exp.Expr:
    """A value less a constant; None stands for 0."""
    value = copy_of(value)
    if constant is None:
        return value
    return exp.Sub(this=exp.paren(value, copy=False), expression=copy_of(constant))


def whole(number: int) -> exp.Expr | None:
    """A whole number as SQL; None for 0."""
    if number == 0:
        return None
    literal = exp.Literal.number(abs(number))
    return literal if number > 0 else exp.paren(exp.Neg(this=literal), copy=False)
