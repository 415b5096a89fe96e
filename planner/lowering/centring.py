"""Summands less the middle of their public range, so that one record moves a sum by half of it.

``AVG(x) = c + SUM(x - c) / COUNT(x)``; squares are centred once more, in their own range.
"""

import math
from dataclasses import dataclass

from sqlglot import exp

from planner.lowering.linear import summed_numbers
from planner.lowering.parts import PartBuilder


@dataclass(frozen=True, slots=True)
class Span:
    """The public range of a summand, and the whole or binary number in its middle.

    `records` is the half-width of a part of its average or variance, in records.
    """

    low: float
    high: float
    middle: exp.Expr | None  # None for 0
    records: float

    @property
    def radius(self) -> float:
        """Half the width of the range."""
        return (self.high - self.low) / 2


def span_of(value: exp.Expr, part: PartBuilder) -> Span:
    """The public range of a summand, under the conditions of its SELECT."""
    array, unit = summed_numbers(value, part.conditions, part.domain)
    least, largest = int(array.values.min()), int(array.values.max())
    low, high = least * unit, largest * unit
    middle = (low + high) / 2
    columns = array.axes if max(-least, largest) > 1 else ()
    records = part.targets.records_of(columns)
    if low.denominator == high.denominator == 1:
        return Span(float(low), float(high), whole(math.floor(middle)), records)
    literal = exp.cast(exp.Literal.string(repr(float(middle))), exp.DType.DOUBLE)
    return Span(float(low), float(high), literal, records)


def centred_square(off: exp.Expr, span: Span) -> tuple[int, exp.Expr]:
    """The middle of the range of a centred value's square, and the square less that."""
    middle = math.floor(span.radius**2 / 2)
    return middle, less(exp.Mul(this=off.copy(), expression=off.copy()), whole(middle))


def less(value: exp.Expr, constant: exp.Expr | None) -> exp.Expr:
    """A value less a constant; None stands for 0."""
    value = value.copy()
    if constant is None:
        return value
    return exp.Sub(this=exp.paren(value, copy=False), expression=constant.copy())


def whole(number: int) -> exp.Expr | None:
    """A whole number as SQL; None for 0."""
    if number == 0:
        return None
    literal = exp.Literal.number(abs(number))
    return literal if number > 0 else exp.paren(exp.Neg(this=literal), copy=False)
