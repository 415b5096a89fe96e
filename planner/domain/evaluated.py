"""The values of an expression on every combination of levels, as they come from the scratchpad.

Decimals of few digits are fetched as doubles, from which their digits are found again; longer ones
and whole numbers beyond 64 bits as objects, which takes a thousand times as long and is counted.
"""

import math
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import DIGITS_MAX
from cube.pace import checkpoint
from cube.query import Scope
from planner.domain.allowance import Allowance

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
