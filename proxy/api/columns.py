"""Columns for clients: the Arrow types of SQL types, and axes as text.

The Arrow types for the SQL types of answers, keys and synthetic columns.

Axes as text: the kind of each column and its levels, for catalogs and views.

Everything here comes from the public declaration; nothing is read from data.
"""

import re
from fractions import Fraction
from typing import Final

import pyarrow as pa

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

_ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "HUGEINT": pa.decimal128(38, 0),
}
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def arrow_type(sql_type: str) -> pa.DataType:
    """The Arrow type of a DuckDB type name."""
    if sql_type in _ARROW_TYPES:
        return _ARROW_TYPES[sql_type]
    decimal = _DECIMAL.fullmatch(sql_type)
    if decimal is None:
        raise ValueError(f"no Arrow type for {sql_type}")
    return pa.decimal128(int(decimal[1]), int(decimal[2]))


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
