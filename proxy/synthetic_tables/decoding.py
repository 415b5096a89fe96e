"""Levels as values: drawn rows as a table that SQL can read.

A bin of numbers gives a random number inside it. Values depend only on the drawn levels and on the
public schema.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    NumericAxis,
    TimestampAxis,
)


def arrow_type(axis: Axis) -> pa.DataType:
    """The type of a column's values."""
    match axis:
        case CategoryAxis():
            return pa.string()
        case BooleanAxis():
            return pa.bool_()
        case DateAxis():
            return pa.date32()
        case TimestampAxis():
            return pa.timestamp("us")
        case IntegerAxis():
            return pa.int64()
        case _:
            return pa.int64() if axis.sql_type == "BIGINT" else pa.float64()


def decoded(axes: Sequence[Axis], rows: NDArray[np.int32], rng: np.random.Generator) -> pa.Table:
    """Rows of levels as a table of values.

    Parameters
    ----------
    axes : sequence of Axis
        The axes of the columns, in order.
    rows : (n_rows, n_columns) ndarray of int32
        The position of each row's level in each column.
    rng : numpy.random.Generator
        For the values inside bins.
    """
    columns = [_values(axis, rows[:, place], rng) for place, axis in enumerate(axes)]
    return pa.table(columns, schema=pa.schema([(one.name, arrow_type(one)) for one in axes]))


def _values(axis: Axis, drawn: NDArray[np.int32], rng: np.random.Generator) -> pa.Array:
    if not isinstance(axis, NumericAxis):
        return pa.array(axis.levels, type=arrow_type(axis)).take(pa.array(drawn))
    edges = np.array(axis.edges, dtype=np.float64)
    is_bin = drawn < len(axis.regular)
    low = np.where(is_bin, drawn, 0)
    # Slightly below 1, so that rounding never leaves the bin.
    share = rng.random(drawn.size) * (1 - 2.0**-40)
    values = edges[low] + share * (edges[low + 1] - edges[low])
    values = np.minimum(values, np.nextafter(edges[low + 1], -np.inf))
    if axis.other_position is not None:
        values = np.where(drawn == axis.other_position, float(str(axis.other)), values)
    is_null = np.zeros(drawn.size, dtype=bool)
    if axis.null_position is not None:
        is_null = drawn == axis.null_position
    return pa.array(values, mask=is_null, type=pa.float64())
