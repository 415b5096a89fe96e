"""Axes as text: the kind of each column and its levels, for catalogs and views.

Everything here comes from the public declaration; nothing is read from data.
"""

from fractions import Fraction

from cube.axis import (
    Axis,
    DateAxis,
    IntegerAxis,
    LevelValue,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.encoding import AXIS_KINDS

N_LEVELS_SHOWN = 8


def axis_kind(axis: Axis) -> str:
    """The `kind` that declares such a column in the configuration."""
    return AXIS_KINDS[type(axis)]


def axis_ends(axis: Axis) -> tuple[str, str] | None:
    """The least and the greatest declared value, as text; None for a column without an order.

    >>> axis_ends(NumericAxis(name="hours", edges=(0.0, 20.0, 99.0)))
    ('0.0', '99.0')
    """
    if isinstance(axis, NumericAxis):
        return str(axis.edges[0]), str(axis.edges[-1])
    if isinstance(axis, IntegerAxis | DateAxis | TimestampAxis):
        return str(axis.low), str(axis.high)
    if isinstance(axis, MeasureAxis):
        return _number(axis.low), _number(axis.high)
    return None


def describe_levels(axis: Axis) -> str:
    """A short, readable text of an axis's levels.

    >>> describe_levels(IntegerAxis(name="age", low=17, high=90, other=-1))
    '17 .. 90, other: -1'
    """
    if isinstance(axis, IntegerAxis | DateAxis):
        regular = f"{axis.low} .. {axis.high}"
    elif isinstance(axis, TimestampAxis):
        zone = "" if axis.time_zone is None else f" on the clock of {axis.time_zone}"
        regular = f"{axis.low} .. {axis.high} by the {axis.step}{zone}"
    elif isinstance(axis, NumericAxis):
        regular = f"{_few(axis.edges)} (edges)"
    elif isinstance(axis, MeasureAxis):
        regular = f"{_number(axis.low)} .. {_number(axis.high)} in steps of {_number(axis.step)}"
    else:
        regular = _few(axis.regular)
    other = "" if axis.other is None else f", other: {axis.other}"
    return f"{regular}{other}{', NULL' if axis.null else ''}"


def _number(value: Fraction | int) -> str:
    exact = Fraction(value)
    return str(exact.numerator if exact.denominator == 1 else float(exact))


def _few(levels: tuple[LevelValue, ...]) -> str:
    shown = ", ".join(str(level) for level in levels[:N_LEVELS_SHOWN])
    n_more = len(levels) - N_LEVELS_SHOWN
    return f"{shown}, ... ({n_more} more)" if n_more > 0 else shown
