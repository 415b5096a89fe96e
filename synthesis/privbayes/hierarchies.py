"""Coarser views of columns with ordered levels: neighbours are merged in pairs.

Public values only. The meaning of levels is not known here, nor which columns need such views.
"""

from typing import Final

import numpy as np

from cube.query import Partition
from synthesis.privbayes.attributes import Attribute
from synthesis.tables import Column, Integers

N_COARSEST: Final = 4  # ordered classes; two would hide most of a column's dependence on others


def plain_attribute(column: Column) -> Attribute:
    """A column that can be a parent only at its own levels."""
    return Attribute.plain(column.name, column.size)


def layered_attribute(column: Column) -> Attribute:
    """A column that can also be a parent at coarser views.

    Parameters
    ----------
    column : Column
        Its first `n_ordered` levels are ordered. Each further view has half as many classes of
        them, rounded up, down to `N_COARSEST` or one less. The levels after them (OTHER, NULL) are
        never merged.

    Examples
    --------
    >>> hours = layered_attribute(Column("hours", size=11, n_ordered=10))
    >>> [view.labels.tolist() for view in hours.views[1:]]
    [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3]]
    """
    n_ordered, views = column.n_ordered, [np.arange(column.size)]
    while n_ordered > N_COARSEST:
        views.append(_halved(n_ordered, column.size - column.n_ordered)[views[-1]])
        n_ordered = (n_ordered + 1) // 2
    return Attribute(column.name, tuple(Partition((column.name,), view) for view in views))


def _halved(n_ordered: int, n_apart: int) -> Integers:
    """The new class of each class after neighbours are merged."""
    n_merged = (n_ordered + 1) // 2
    return np.concatenate([np.arange(n_ordered) // 2, n_merged + np.arange(n_apart)])
