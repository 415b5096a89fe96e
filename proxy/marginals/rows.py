"""Marginals as one long Arrow table: one row for each cell of each set, keys as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.axis import LevelValue
from cube.schema import Schema
from inference.marginals.table import Floats

MARGINALS_SCHEMA: Final = pa.schema(
    [
        pa.field("marginal", pa.int32(), nullable=False),  # the set's index in the request, from 0
        pa.field("columns", pa.list_(pa.string()), nullable=False),
        pa.field("keys", pa.list_(pa.string()), nullable=False),  # a null key is SQL's NULL
        pa.field("value", pa.float64(), nullable=False),
        pa.field("low", pa.float64()),  # null, like the next two, if the cell has no interval
        pa.field("high", pa.float64()),
        pa.field("standard_error", pa.float64()),
        pa.field("source", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, eq=False)
class MarginalRows:
    """The cells of one set, with the last column varying fastest.

    Parameters
    ----------
    columns : tuple of str
        The columns, in the order in which they are shown.
    values : (n_cells,) ndarray of float64
    low, high, standard_errors : (n_cells,) ndarray of float64
        NaN where there is none.
    source : str
    """

    columns: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    standard_errors: Floats
    source: str


def in_order(values: Floats, columns: Sequence[str]) -> Floats:
    """The cells of a table over sorted axes, in the order of `columns`, the last one fastest."""
    scope = sorted(columns)
    return np.transpose(values, [scope.index(name) for name in columns]).ravel()


def long_table(marginals: Sequence[MarginalRows], schema: Schema) -> pa.Table:
    """All sets, one after another."""
    pieces = [_piece(number, one, schema) for number, one in enumerate(marginals)]
    return pa.Table.from_batches(pieces, schema=MARGINALS_SCHEMA)


def _piece(number: int, one: MarginalRows, schema: Schema) -> pa.RecordBatch:
    n_rows, width = one.values.size, len(one.columns)
    names = pa.array(one.columns, pa.string()).take(pa.array(np.tile(np.arange(width), n_rows)))
    keys = pa.array(_keys(one.columns, schema).ravel(), pa.string())
    arrays = [
        pa.array(np.full(n_rows, number), pa.int32()),
        _lists(names, n_rows, width),
        _lists(keys, n_rows, width),
        pa.array(one.values, pa.float64()),
        *(
            pa.array(column, pa.float64(), from_pandas=True)
            for column in (one.low, one.high, one.standard_errors)
        ),
        pa.array([one.source] * n_rows, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MARGINALS_SCHEMA)


def _lists(values: pa.Array, n_rows: int, width: int) -> pa.ListArray:
    offsets = pa.array(np.arange(n_rows + 1) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, values)


def _keys(columns: Sequence[str], schema: Schema) -> NDArray[np.object_]:
    """The texts of every cell's levels, (n_rows, n_columns)."""
    by_name = {axis.name: axis for axis in schema.axes}
    texts = [
        np.array([level_text(level) for level in by_name[name].levels], dtype=np.object_)
        for name in columns
    ]
    grids = np.meshgrid(*texts, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1) if grids else np.empty((1, 0), object)


def level_text(level: LevelValue) -> str | None:
    """A level as SQL would show it as text; None for NULL."""
    if level is None:
        return None
    if isinstance(level, bool):
        return str(level).lower()
    return str(level)
