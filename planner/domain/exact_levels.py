"""The levels of a number column as exact numbers: whole multiples of one unit.

A level of 19.99 is a double in results, and 1999 hundredths here, so that comparisons and sums are
of what the owner declared and not of its nearest double. Columns of bins have no exact levels: a
bin is not one number.
"""

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cube.axis import INTEGER_MAX, Axis, DateAxis, IntegerAxis, MeasureAxis

MULTIPLE_MAX = 2**62  # beyond any level


@dataclass(frozen=True, eq=False)
class ExactLevels:
    """A column's levels, ``multiples * unit``.

    Parameters
    ----------
    multiples : (n_levels,) ndarray of int64
        0 at NULL.
    unit : Fraction
    null : (n_levels,) ndarray of bool
        Where the level is NULL.
    """

    multiples: NDArray[np.int64]
    unit: Fraction
    null: NDArray[np.bool_]


def exact_levels(axis: Axis) -> ExactLevels | None:
    """The levels of a column of single numbers; None for any other column."""
    if isinstance(axis, MeasureAxis):
        return _with_null(axis, _spaced(axis.multiples, ()), axis.unit)
    if isinstance(axis, IntegerAxis):
        other = (axis.other,) if isinstance(axis.other, int) else ()
        if any(abs(level) > INTEGER_MAX for level in other):
            return None
        return _with_null(axis, _spaced(range(axis.low, axis.high + 1), other), Fraction(1))
    return None


def day_numbers(axis: DateAxis) -> ExactLevels:
    """The levels of a column of days, counted from its first."""
    other = ((axis.other - axis.low).days,) if isinstance(axis.other, dt.date) else ()
    return _with_null(axis, _spaced(range(axis.n_regular), other), Fraction(1))


def _spaced(regular: range, other: tuple[int, ...]) -> NDArray[np.int64]:
    spaced = np.arange(regular.start, regular.stop, regular.step, dtype=np.int64)
    return np.concatenate([spaced, np.array(other, dtype=np.int64)])


def _with_null(axis: Axis, multiples: NDArray[np.int64], unit: Fraction) -> ExactLevels:
    null = np.zeros(multiples.size + axis.null, dtype=np.bool_)
    null[multiples.size :] = True
    every = np.zeros(null.size, dtype=np.int64)
    every[: multiples.size] = multiples
    every.flags.writeable = null.flags.writeable = False
    return ExactLevels(every, unit, null)


def is_level(axis: IntegerAxis | MeasureAxis, value: Fraction) -> bool:
    """Whether a number is one of a column's levels."""
    if isinstance(axis, MeasureAxis):
        multiple = value / axis.unit
        return multiple.denominator == 1 and int(multiple) in axis.multiples
    is_regular = value.denominator == 1 and axis.low <= value <= axis.high
    return is_regular or (axis.other is not None and value == axis.other)


def stored_type(axis: Axis) -> str:
    """The type of a column in the scratchpad: that of the column in SQL, but decimals are exact."""
    if not isinstance(axis, MeasureAxis) or axis.is_whole or axis.decimal_places is None:
        return axis.sql_type
    largest = int(max(abs(Fraction(axis.low)), abs(Fraction(axis.high))))
    return f"DECIMAL({len(str(largest)) + axis.decimal_places}, {axis.decimal_places})"
