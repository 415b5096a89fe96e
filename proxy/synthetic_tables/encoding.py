"""Values as levels: from the rows of a synthetic table back to the drawn levels.

Used to compare synthetic rows with the history's estimates for levels. These rows are public.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cube.axis import Axis, NumericAxis


def levels_of(axes: Sequence[Axis], table: pa.Table) -> dict[str, NDArray[np.int64]]:
    """The position of each row's level in each column, in the order of `axes`.

    Raises
    ------
    ValueError
        If a value has no level.
    """
    return {axis.name: _places(axis, table.column(axis.name)) for axis in axes}


def _places(axis: Axis, values: pa.ChunkedArray) -> NDArray[np.int64]:
    if isinstance(axis, NumericAxis):
        return _bins(axis, values)
    found = pc.index_in(values, value_set=pa.array(axis.levels, type=values.type))
    if found.null_count:
        raise _no_level(axis)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _bins(axis: NumericAxis, values: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers = values.cast(pa.float64()).to_numpy()
    is_null = np.isnan(numbers)
    places: NDArray[np.int64] = np.searchsorted(axis.edges, numbers, side="right") - 1
    places[numbers == axis.edges[-1]] = len(axis.regular) - 1
    is_outside = is_null | (places < 0) | (places >= len(axis.regular))
    for level, is_there in (
        (axis.other_position, numbers == axis.other),
        (axis.null_position, is_null),
    ):
        if level is not None:
            places[is_there] = level
            is_outside &= ~is_there
    if is_outside.any():
        raise _no_level(axis)
    return places


def _no_level(axis: Axis) -> ValueError:
    return ValueError(f"{axis.name} has a value without a level")
