"""Groupings for tests: every level by itself, and what a grouping counts by its definition."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.grouping import NOT_COUNTED, Grouping
from cube.schema import Schema


def each(schema: Schema, *scope: str) -> Grouping:
    """Every cell of a scope by itself."""
    return Grouping.of_each(scope, schema.sizes(scope))


def counted_levels(
    grouping: Grouping, levels: Sequence[NDArray[np.int64]], n_rows: int
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.bool_]]:
    """The levels as which rows are counted, and which rows are."""
    found = tuple(runs.at(one) for runs, one in zip(grouping.runs, levels, strict=True))
    is_counted = np.ones(n_rows, dtype=np.bool_)
    for one in found:
        is_counted &= one != NOT_COUNTED
    return tuple(one[is_counted] for one in found), is_counted
