"""Summands as whole numbers times one unit, exactly where they are exact.

Integers and decimals are. Doubles are if one unit of at most 26 bits serves them all; else each is
rounded to a multiple of ``2**-26`` of the power of two above the largest, and what is rounded here
is the query from then on.
"""

from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.query import COEFFICIENT_MAX, rational_gcd
from planner.domain.evaluated import EXACT_TYPES, Evaluated, decimal_places
from planner.sql.messages import unsupported

# What remains of a double whose exact value has more bits. More would make its row's whole-number
# coefficients so large that the smallest weight, 2**-40, is already dear.
SIGNIFICANT_BITS = 26
INTEGER_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
DOUBLE_TYPES = ("FLOAT", "DOUBLE")
_EXACT = (*EXACT_TYPES, "UBIGINT")


def whole_multiples(evaluated: Evaluated, summand: exp.Expr) -> tuple[NDArray[np.int64], Fraction]:
    """Whole numbers and a unit; their product is the summand, and 0 where that is NULL.

    Raises
    ------
    UnsupportedSql
        If it is no number, or not finite.
    """
    sql_type, kept = evaluated.sql_type, ~evaluated.null
    places = decimal_places(sql_type)
    if places is not None:
        decimals = np.where(kept, evaluated.values, 0).astype(np.float64)
        return np.rint(decimals * 10.0**places).astype(np.int64), Fraction(1, 10**places)
    if sql_type.startswith(DOUBLE_TYPES):
        doubles = np.where(kept, evaluated.values, 0).astype(np.float64)
        if not np.isfinite(doubles).all():
            raise unsupported(
                summand, "is infinite or not a number on some level", "Guard it with CASE."
            )
        return dyadic(doubles)
    if sql_type.startswith(_EXACT):
        return _common_unit(np.where(kept, evaluated.values, 0).astype(object), summand)
    if sql_type in INTEGER_TYPES:
        return np.where(kept, evaluated.values, 0).astype(np.int64), Fraction(1)
    if sql_type == "NULL":
        return np.zeros(kept.shape, dtype=np.int64), Fraction(1)
    raise unsupported(
        summand,
        f"is no number but a {sql_type}",
        "Count a condition with COUNT(*) FILTER (WHERE ..).",
    )


def dyadic(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Fraction]:
    """Doubles as whole multiples of one power of two.

    >>> dyadic(np.array([0.5, 3.0]))
    (array([1, 6]), Fraction(1, 2))
    """
    nonzero = values[values != 0]
    if nonzero.size == 0:
        return np.zeros(values.shape, dtype=np.int64), Fraction(1)
    mantissas, exponents = np.frexp(nonzero)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    trailing = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    top = int(exponents.max())
    finest = int((exponents - 53 + trailing).min())
    unit_exponent = max(finest, top - SIGNIFICANT_BITS)
    multiples = np.rint(np.ldexp(values, -unit_exponent)).astype(np.int64)
    return multiples, Fraction(2) ** unit_exponent


def _common_unit(exact: NDArray[Any], summand: exp.Expr) -> tuple[NDArray[np.int64], Fraction]:
    """Integers or decimals beyond 64 bits as whole multiples of their greatest common divisor."""
    fractions = {value: Fraction(value) for value in set(exact.ravel().tolist())}
    unit = reduce(rational_gcd, fractions.values(), Fraction(0)) or Fraction(1)
    wholes = {value: int(fraction / unit) for value, fraction in fractions.items()}
    if max(abs(whole) for whole in wholes.values()) > COEFFICIENT_MAX:
        raise unsupported(
            summand,
            "has values too far apart to be summed exactly",
            "Round them, as in ROUND(x, 2).",
        )
    multiples = [wholes[value] for value in exact.ravel()]
    return np.array(multiples, dtype=np.int64).reshape(exact.shape), unit
