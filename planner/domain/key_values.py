"""The values of a group key as Python values of the types that levels have.

Cells are many and keys are few: what takes a Python object each is done for the keys alone.
"""

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import LevelValue
from cube.refusals import TooLarge
from planner.domain.evaluated import Evaluated
from planner.domain.whole_multiples import DOUBLE_TYPES, INTEGER_TYPES
from planner.sql.messages import position, shown, unsupported

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
                f"The group key {shown(key)} is beyond 64 bits.",
                hint="Cast it to DOUBLE.",
                position=position(key),
            )
        plain, sql_type = list(whole), "BIGINT"
    elif sql_type.startswith((*DOUBLE_TYPES, "DECIMAL")):
        doubles = np.array([0.0 if n else float(v) for v, n in zip(flat, null, strict=True)])
        if not np.isfinite(doubles).all():
            raise unsupported(
                key, "is infinite or not a number on some level", "Guard it with CASE."
            )
        exact = {value for value, n in zip(flat.tolist(), null, strict=True) if not n}
        if len(set(map(float, exact))) < len(exact):
            raise TooLarge(
                f"The group key {shown(key)} has decimals that are the same DOUBLE.",
                hint="Cast it to DOUBLE, or to texts with ::text.",
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
        raise unsupported(key, f"is a {sql_type}, which is no key", "Cast it to a simple type.")
    return sql_type, [None if n else value for value, n in zip(plain, null, strict=True)]


def _days(flat: NDArray[Any], null: NDArray[np.bool_], key: exp.Expr) -> list[LevelValue]:
    """Dates, from dates or from timestamps at midnight (DATE_TRUNC gives those)."""
    moments = flat.astype("datetime64[us]")
    days = moments.astype("datetime64[D]")
    if (~null & (days.astype("datetime64[us]") != moments)).any():
        raise unsupported(key, "is a moment, not a day", "Cast it to DATE.")
    _check_years(days, null, key)
    values: list[LevelValue] = [
        None if is_null else dt.date.fromisoformat(str(day))
        for day, is_null in zip(days, null, strict=True)
    ]
    return values


def _check_years(moments: NDArray[Any], null: NDArray[np.bool_], key: exp.Expr) -> None:
    days = moments.astype("datetime64[D]")
    if (~null & ~((days >= _FIRST_DAY) & (days <= _LAST_DAY))).any():
        raise unsupported(key, "has days outside the years 1 to 9999", "Leave them out with CASE.")
