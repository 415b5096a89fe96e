"""Reads exact numbers from SQL text: 0.1 is one tenth.

Bounded on purpose: ``1e999999999`` is ten characters of text and a gigabyte of digits.
"""

import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from cube.refusals import TooLarge, UnsupportedSql
from planner.sql.messages import position, shortened, shown, unsupported
from planner.sql.nodes import WRITTEN_FOR, Written

N_DIGITS_MAX = 60
EXPONENT_MAX = 60
N_BITS_MAX = 512  # of a numerator or denominator after arithmetic; such numbers print in a line

_NUMBER = re.compile(r"(?P<digits>\d+\.?\d*|\.\d+)(?:[eE](?P<exponent>[+-]?\d+))?")

_ARITHMETIC: dict[type[exp.Expr], Callable[[Fraction, Fraction], Fraction]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}


def exact_number(text: str, literal: exp.Expr | None = None) -> Fraction:
    """The number that `text` writes, with all its digits; `literal` is where it stands.

    >>> exact_number("2.5e-1")
    Fraction(1, 4)

    Raises
    ------
    UnsupportedSql
        If the text is no plain decimal number.
    TooLarge
        If it has more digits, or a larger exponent, than the limits above.
    """
    match = _NUMBER.fullmatch(text)
    where = exp.null() if literal is None else literal
    if match is None:
        raise UnsupportedSql(
            f"{shortened(text)} is not a decimal number.",
            hint="Write a number such as 31 or 3.1e1.",
            position=position(where),
        )
    exponent = match["exponent"] or "0"
    if (
        len(match["digits"]) > N_DIGITS_MAX
        or len(exponent) > len("-") + len(str(EXPONENT_MAX))
        or abs(int(exponent)) > EXPONENT_MAX
    ):
        raise TooLarge(
            f"The number {shortened(text)} is too long.",
            hint=f"A number may have up to {N_DIGITS_MAX} digits and powers of ten up to "
            f"{EXPONENT_MAX}.",
            position=position(where),
        )
    whole, _, places = match["digits"].partition(".")
    power = int(exponent) - len(places)
    digits = int(whole + places)
    return Fraction(digits * 10**power) if power >= 0 else Fraction(digits, 10**-power)


def constant_value(node: exp.Expr) -> Fraction | None:
    """The exact value of arithmetic on number literals; None if `node` is anything else.

    As in PostgreSQL, a whole number divided by a whole number is cut to a whole number.

    >>> from sqlglot import parse_one
    >>> constant_value(parse_one("-7 / 2")), constant_value(parse_one("7 / 2.0"))
    (Fraction(-3, 1), Fraction(7, 2))
    """
    node = node.unnest()
    if isinstance(node, Written):
        node = node.meta[WRITTEN_FOR].unnest()
    if isinstance(node, exp.Literal) and not node.is_string:
        return exact_number(node.name, node)
    if isinstance(node, exp.Neg):
        operand = constant_value(node.this)
        return None if operand is None else -operand
    operation = _ARITHMETIC.get(type(node))
    if operation is None or not isinstance(_leftmost(node), exp.Literal | exp.Neg | Written):
        return None  # a long sum is asked about at each of its signs: most end here
    left, right = constant_value(node.this), constant_value(node.expression)
    if left is None or right is None:
        return None
    if right == 0 and isinstance(node, exp.Div):
        raise divided_by_zero(node)
    value = operation(left, right)
    if isinstance(node, exp.Div) and is_written_whole(node):
        value = Fraction(math.trunc(value))
    return _bounded(value, node)


def _leftmost(node: exp.Expr) -> exp.Expr:
    """The first operand of all in a chain of arithmetic."""
    while type(node) in _ARITHMETIC or isinstance(node, exp.Paren):
        node = node.this
    return node


def is_written_whole(node: exp.Expr) -> bool:
    """Whether arithmetic on literals has whole-number operands only, and so a whole-number type."""
    return all(
        literal.name.isdigit() for literal in node.find_all(exp.Literal) if not literal.is_string
    )


def divided_by_zero(node: exp.Expr) -> UnsupportedSql:
    """The refusal of a division whose divisor is the constant 0."""
    return unsupported(node, "divides by zero", "Divide by another number, or by NULLIF(x, 0).")


def _bounded(value: Fraction, node: exp.Expr) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > N_BITS_MAX:
        raise TooLarge(
            f"The constant {shown(node)} is too large.",
            hint=f"A constant may have up to {N_BITS_MAX} bits.",
            position=position(node),
        )
    return value
