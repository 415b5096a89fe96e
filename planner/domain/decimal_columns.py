"""Exact arithmetic on columns of decimals, where DuckDB's would go by doubles or round.

PostgreSQL divides decimals as decimals; DuckDB makes doubles of them, and 0.15 / 0.05 is less than
3 then. So division by a constant becomes multiplication by its reciprocal, if that is a decimal.
And a number between quotes is compared as the number that it is, not rounded to the column's
digits.
"""

from collections.abc import Collection, Iterator
from fractions import Fraction

from sqlglot import exp

from cube.axis import DIGITS_MAX
from cube.refusals import Refused
from planner.sql.exact_number import constant_value, exact_number

_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.In, exp.Between),
)


def with_exact_decimals(expression: exp.Expr, decimals: Collection[str]) -> exp.Expr:
    """The expression with exact arithmetic on these columns; itself if it has none of them."""
    columns = list(_columns(expression, decimals))
    if not columns:
        return expression
    around = exp.Paren(this=expression.copy())
    for column in list(_columns(around, decimals)):
        _make_exact(column)
    exact: exp.Expr = around.this
    return exact


def _columns(expression: exp.Expr, decimals: Collection[str]) -> Iterator[exp.Column]:
    return (one for one in expression.find_all(exp.Column) if one.name in decimals)


def _make_exact(column: exp.Column) -> None:
    operand: exp.Expr = column
    while isinstance(operand.parent, exp.Paren):
        operand = operand.parent
    around = operand.parent
    if isinstance(around, exp.Div) and around.this is operand:
        factor = _reciprocal(around.expression)
        if factor is not None:
            around.replace(exp.Mul(this=operand.copy(), expression=factor))
    elif isinstance(around, _COMPARISONS):
        for other in list(around.iter_expressions()):
            if isinstance(other, exp.Literal) and other.is_string:
                _make_number(other)


def _reciprocal(divisor: exp.Expr) -> exp.Expr | None:
    """One divided by a constant, as a decimal; None if it is none of few digits."""
    by = constant_value(divisor)
    if not by:
        return None
    factor = 1 / by
    for places in range(DIGITS_MAX + 1):
        digits = factor * 10**places
        if digits.denominator == 1 and abs(digits) < 10**DIGITS_MAX:
            return _decimal(digits, places)
    return None


def _decimal(digits: Fraction, places: int) -> exp.Expr:
    text = f"{abs(int(digits)):0{places + 1}d}"
    number = exp.Literal.number(f"{text[:-places]}.{text[-places:]}" if places else text)
    return exp.paren(exp.Neg(this=number), copy=False) if digits < 0 else number


def _make_number(literal: exp.Literal) -> None:
    """Put a number in place of a text that writes one; others are left to DuckDB to refuse."""
    text = literal.name.strip()
    try:
        exact_number(text.removeprefix("-"), literal)
    except Refused:
        return
    number: exp.Expr = exp.Literal.number(text.removeprefix("-"))
    literal.replace(exp.Neg(this=number) if text.startswith("-") else number)
