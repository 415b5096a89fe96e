"""Converts the values of an expression on all combinations of levels: to multiples, or to keys.

Decimals of few digits are fetched as doubles, from which their digits are found again; longer ones
and whole numbers beyond 64 bits as objects, which takes a thousand times as long and is counted.

Summands as whole numbers times one unit, exactly where they are exact.

Integers and decimals are. Doubles are if one unit of at most 26 bits serves them all; else each is
rounded to a multiple of ``2**-26`` of the power of two above the largest, and what is rounded here
is the query from then on.

The values of a group key as Python values of the types that levels have.

Cells are many and keys are few: what takes a Python object each is done for the keys alone.
"""

import datetime as dt
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import DIGITS_MAX, LevelValue
from cube.pace import checkpoint
from cube.query import COEFFICIENT_MAX, Scope, rational_gcd
from cube.refusals import TooLarge
from planner.domain.allowance import Allowance
from planner.sql import position, shown, unsupported

EXACT_TYPES = ("DECIMAL", "HUGEINT", "UHUGEINT")  # numpy would receive these as doubles
N_STEPS_EXACT = 2500  # to fetch one such value, as an object
N_FETCHED: Final = 10_000  # of them at once
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, eq=False)
class Evaluated:
    """An expression's value on every combination of levels.

    Parameters
    ----------
    axes : tuple of str
        The columns the expression mentions, sorted.
    sql_type : str
        DuckDB's name of the type.
    values : ndarray
        One dimension for each axis; anything where `null` is true. Decimals of up to 15 digits are
        the nearest doubles, larger ones and whole numbers beyond 64 bits are objects.
    null : ndarray of bool
        Where the value is NULL.
    """

    axes: Scope
    sql_type: str
    values: NDArray[Any]
    null: NDArray[np.bool_]


def read_values(
    cursor: Any, expression: exp.Expr, axes: Scope, shape: tuple[int, ...], allowance: Allowance
) -> Evaluated:
    """The result of a query for (cell, value), in the order of the cells; NULL where none came."""
    sql_type = str(cursor.description[1][1]).strip('"')
    count_exact(sql_type, math.prod(shape), expression, allowance)
    cells, values, null = _fetched(cursor, sql_type)
    n_cells = math.prod(shape)  # those that the query leaves out are NULL
    in_order, is_null = np.zeros(n_cells, values.dtype), np.ones(n_cells, np.bool_)
    in_order[cells], is_null[cells] = values, null
    return Evaluated(axes, sql_type, in_order.reshape(shape), is_null.reshape(shape))


def _fetched(
    cursor: Any, sql_type: str
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.bool_]]:
    if _is_fetched_as_objects(sql_type):
        rows: list[tuple[int, Any]] = []
        while found := cursor.fetchmany(N_FETCHED):
            checkpoint()
            rows += found
        values = np.array([value for _, value in rows], dtype=object)
        null = np.array([value is None for _, value in rows], dtype=np.bool_)
        return np.array([cell for cell, _ in rows], dtype=np.int64), values, null
    columns = cursor.fetchnumpy()
    masked = np.ma.asarray(columns["value"])
    return np.asarray(columns["cell"], dtype=np.int64), masked.data, np.ma.getmaskarray(masked)


def count_exact(sql_type: str, n_cells: int, expression: exp.Expr, allowance: Allowance) -> None:
    """Count the work of fetching values as objects, if theirs are."""
    if _is_fetched_as_objects(sql_type):
        allowance.steps(n_cells * N_STEPS_EXACT, 0, expression)


def decimal_places(sql_type: str) -> int | None:
    """The places of a decimal type that tells no two values apart that doubles do not; else None.

    >>> decimal_places("DECIMAL(6,2)"), decimal_places("DECIMAL(18,3)"), decimal_places("DOUBLE")
    (2, None, None)
    """
    match = _DECIMAL.fullmatch(sql_type)
    return int(match[2]) if match is not None and int(match[1]) <= DIGITS_MAX else None


def _is_fetched_as_objects(sql_type: str) -> bool:
    return sql_type.startswith(EXACT_TYPES) and decimal_places(sql_type) is None


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
                summand,
                "is infinite or not a number on some level",
                "Exclude such levels with CASE.",
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
        f"is a {sql_type}, and a number is needed",
        "To count a condition, use COUNT(*) FILTER (WHERE ..).",
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
            "has values of too different sizes to be summed exactly",
            "Round them, as in ROUND(x, 2).",
        )
    multiples = [wholes[value] for value in exact.ravel()]
    return np.array(multiples, dtype=np.int64).reshape(exact.shape), unit


_FIRST_DAY = np.datetime64("0001-01-01")
_LAST_DAY = np.datetime64("9999-12-31")


def different(evaluated: Evaluated) -> tuple[Evaluated, NDArray[np.int64]]:
    """The same with each value once, and the place of each cell's among them."""
    flat, null = evaluated.values.ravel(), evaluated.null.ravel()
    if flat.dtype == object:
        places: dict[object, int] = {}
        found = zip(flat.tolist(), null.tolist(), strict=True)
        place = np.array([places.setdefault(one, len(places)) for one in found], dtype=np.int64)
    else:
        _, by_value = np.unique(flat, return_inverse=True)
        _, place = np.unique(2 * by_value + null, return_inverse=True)
    _, first = np.unique(place, return_index=True)
    return replace(evaluated, values=flat[first], null=null[first]), place


def plain_values(
    evaluated: Evaluated, key: exp.Expr, *, is_of_days: bool
) -> tuple[str, list[LevelValue]]:
    """Key values as Python values of one of the six types that levels have.

    With `is_of_days` its timestamps are days: DATE_TRUNC of a date is a date.
    """
    sql_type, flat = evaluated.sql_type, evaluated.values.ravel()
    null = evaluated.null.ravel().tolist()
    plain: list[LevelValue]
    if sql_type in ("VARCHAR", "BOOLEAN", "NULL"):
        plain, sql_type = flat.tolist(), "VARCHAR" if sql_type == "NULL" else sql_type
    elif sql_type in (*INTEGER_TYPES, "HUGEINT", "UHUGEINT", "UBIGINT"):
        whole = [0 if n else int(value) for value, n in zip(flat, null, strict=True)]
        if max(abs(value) for value in whole) >= 2**63:
            raise TooLarge(
                f"The group key {shown(key)} has values that do not fit in 64 bits.",
                hint="Cast it to DOUBLE.",
                position=position(key),
            )
        plain, sql_type = list(whole), "BIGINT"
    elif sql_type.startswith((*DOUBLE_TYPES, "DECIMAL")):
        doubles = np.array([0.0 if n else float(v) for v, n in zip(flat, null, strict=True)])
        if not np.isfinite(doubles).all():
            raise unsupported(
                key, "is infinite or not a number on some level", "Exclude such levels with CASE."
            )
        exact = {value for value, n in zip(flat.tolist(), null, strict=True) if not n}
        if len(set(map(float, exact))) < len(exact):
            raise TooLarge(
                f"The group key {shown(key)} has different decimals that become the same DOUBLE.",
                hint="Cast it to DOUBLE, or to text with ::text.",
                position=position(key),
            )
        plain, sql_type = (doubles + 0.0).tolist(), "DOUBLE"  # + 0.0 turns -0.0 into 0.0
    elif sql_type == "TIMESTAMP" and not is_of_days:
        moments = flat.astype("datetime64[us]")
        _check_years(moments, evaluated.null.ravel(), key)
        plain = moments.tolist()
    elif sql_type in ("DATE", "TIMESTAMP"):
        plain, sql_type = _days(flat, evaluated.null.ravel(), key), "DATE"
    else:
        raise unsupported(
            key,
            f"is a {sql_type}, which cannot be a group key",
            "Cast it to a number, a text, a boolean, a date or a timestamp.",
        )
    return sql_type, [None if n else value for value, n in zip(plain, null, strict=True)]


def _days(flat: NDArray[Any], null: NDArray[np.bool_], key: exp.Expr) -> list[LevelValue]:
    """Dates, from dates or from timestamps at midnight (DATE_TRUNC gives those)."""
    moments = flat.astype("datetime64[us]")
    days = moments.astype("datetime64[D]")
    if (~null & (days.astype("datetime64[us]") != moments)).any():
        raise unsupported(key, "has a time of day, and a date is needed", "Cast it to DATE.")
    _check_years(days, null, key)
    values: list[LevelValue] = [
        None if is_null else dt.date.fromisoformat(str(day))
        for day, is_null in zip(days, null, strict=True)
    ]
    return values


def _check_years(moments: NDArray[Any], null: NDArray[np.bool_], key: exp.Expr) -> None:
    days = moments.astype("datetime64[D]")
    if (~null & ~((days >= _FIRST_DAY) & (days <= _LAST_DAY))).any():
        raise unsupported(key, "has days outside the years 1 to 9999", "Exclude them with CASE.")
