"""The few shapes of SQL that the statements are made of, as expression trees of sqlglot.

Numbers and texts of the public declaration become literals here, and nowhere else: a double is
written as the text that only it reads back from, so that every engine compares with the same one.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from sqlglot import exp

BIG: Final = "BIGINT"
DOUBLE: Final = "DOUBLE"
FAN_OUT: Final = 32  # of a tree of comparisons


def whole(value: int) -> exp.Expr:
    """A whole number."""
    number = exp.Literal.number(abs(value))
    return exp.paren(exp.Neg(this=number)) if value < 0 else number


def double(value: float) -> exp.Expr:
    """A double, exactly."""
    return exp.cast(exp.Literal.string(repr(float(value))), DOUBLE)


def decimal(value: Decimal, digits: int, places: int) -> exp.Expr:
    """A decimal, exactly."""
    return exp.cast(exp.Literal.string(f"{value:f}"), f"DECIMAL({digits}, {places})")


def name(text: str, table: str | None = None) -> exp.Column:
    """A quoted column."""
    return exp.column(text, table=table, quoted=True)


def text(value: str) -> exp.Expr:
    """A text."""
    return exp.Literal.string(value)


def plus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A sum."""
    return exp.paren(exp.Add(this=left.copy(), expression=right.copy()))


def minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A difference."""
    return exp.paren(exp.Sub(this=left.copy(), expression=right.copy()))


def times(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A product."""
    return exp.paren(exp.Mul(this=left.copy(), expression=right.copy()))


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """A function by its name in the engine."""
    return exp.Anonymous(this=function, expressions=[one.copy() for one in arguments])


def case(
    branches: Iterable[tuple[exp.Expr, exp.Expr]],
    otherwise: exp.Expr | None = None,
) -> exp.Case:
    """CASE WHEN ... THEN ... ELSE ... END."""
    found = exp.Case()
    for condition, value in branches:
        found = found.when(condition.copy(), value.copy())
    return found if otherwise is None else found.else_(otherwise.copy())


def both(*conditions: exp.Expr) -> exp.Expr:
    """All of the conditions; true of none."""
    return exp.and_(*conditions) if conditions else exp.true()


def between(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """Whether a value lies between two others, or is one of them."""
    return exp.Between(this=value.copy(), low=low.copy(), high=high.copy())


def clamped(value: exp.Expr, low: int, high: int) -> exp.Expr:
    """A whole number that is not NULL, or the nearer of two bounds."""
    return call("greatest", whole(low), call("least", whole(high), value))


def searched(value: exp.Expr, edges: Sequence[exp.Expr]) -> exp.Expr:
    """The place of the last of some edges, in order, that is at most a value; NULL if none is.

    A tree of comparisons, broad and not deep: engines read what is nested slowly.
    """

    def among(first: int, end: int) -> exp.Expr:
        if end - first == 1:
            return whole(first)
        each = -(-(end - first) // FAN_OUT)
        starts = list(range(first, end, each))
        branches = [
            (exp.GTE(this=value.copy(), expression=edges[start].copy()), among(start, stop))
            for start, stop in zip(starts[1:], [*starts[2:], end], strict=True)
        ]
        return case(reversed(branches), among(first, starts[1]))

    reached = exp.GTE(this=value.copy(), expression=edges[0].copy())
    return case(((reached, among(0, len(edges))),))
