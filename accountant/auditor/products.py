"""Rows as products: a height, and what share of it is paid in each class of each axis.

    cost of a row at a cell  <=  height * product over axes of  share of the cell's class / WHOLE

The two sides are about equal for what is usually measured, a count or a sum over a box of cells.
Of a row that is no product, a share only says whether anything is paid in a class.
Proof: proofs/ledger.md, "Boxes".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.classes import Indices
from accountant.auditor.prices import Whole
from accountant.auditor.rows import LevelArray
from accountant.auditor.tables import Layout, Part, Table

WHOLE: Final = 2**12
N_COMPARED_MAX: Final = 2**12  # cells of a row; of a larger one, only where it is paid is used
HEIGHTS_MAX: Final = 2**46  # of all rows: sums of shares of them stay in int64

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """The products that depend on one axis.

    Parameters
    ----------
    places : (n,) ndarray
        Their places among all products, ascending.
    shares : (n, n_classes) ndarray
    about : (n, n_classes) ndarray
        The same as floats, which multiply faster.
    """

    places: Numbers
    shares: Numbers
    about: NDArray[np.float32]

    def first(self, n_products: int) -> "Along":
        """Those among the first products."""
        n = int(np.searchsorted(self.places, n_products))
        return Along(self.places[:n], self.shares[:n], self.about[:n])


class Products:
    """All rows of a history as products, in order.

    Parameters
    ----------
    layout : Layout

    Attributes
    ----------
    heights : (n_products,) ndarray
    along : list of Along
        For each axis of `layout.classes`.
    ends : list of int
        How many products the first rows are, for each number of rows.
    constants : list of int
        What the first rows cost every cell beside them.
    """

    def __init__(self, layout: Layout) -> None:
        heights: list[int] = []
        shares: dict[str, list[tuple[int, Numbers]]] = {axis: [] for axis in layout.classes}
        self.ends, self.constants = [0], [0]
        for parts in layout.parts:
            constant = self.constants[-1]
            for part in parts:
                if part.table is None:
                    constant += part.row.bound
                    continue
                height, of_axis = _product(part, layout)
                for axis, share in of_axis.items():
                    shares[axis].append((len(heights), share))
                heights.append(height)
            self.ends.append(len(heights))
            self.constants.append(constant)
        self.heights = np.array(heights, dtype=np.int64)
        self.along = [
            _along(found, layout.classes[axis].levels.size) for axis, found in shares.items()
        ]


def _along(found: Sequence[tuple[int, Numbers]], n_classes: int) -> Along:
    places = np.array([place for place, _ in found], dtype=np.int64)
    shares = np.array([own for _, own in found], np.int64).reshape(-1, n_classes)
    return Along(places, shares, shares.astype(np.float32))


_Shares = dict[str, Numbers]


def _product(part: Part, layout: Layout) -> tuple[int, _Shares]:
    """The height of a part of a row, and its share in each class of the axes it depends on."""
    row = part.row
    arrays = row.share.arrays
    axes = [axis for array in arrays for axis in array.axes]
    is_linear = (row.price.shift, row.price.power) == (0, 1)
    if is_linear and len(row.share.terms) == 1 and len(arrays) == len(axes) == len(set(axes)):
        # A product as it is written, so that no cell need be looked at.
        return row.bound, {
            axis: _rounded_up(array, layout.classes[axis].levels)
            for axis, array in zip(axes, arrays, strict=True)
        }
    return _compared(part, layout)


def _rounded_up(array: LevelArray, levels: Indices) -> Numbers:
    """What share of an array's largest magnitude there is at some levels."""
    largest = max(1, array.bound)  # an array of zeros has no share of anything
    shares: Numbers = -(-np.abs(array.at([levels])) * WHOLE // largest)
    return shares


def _compared(part: Part, layout: Layout) -> tuple[int, _Shares]:
    """Shares of the largest cost along each axis, if no cell pays more than their product."""
    axes = part.row.share.axes
    table = Table(axes, [part.row.share], layout.classes)
    costs = np.broadcast_to(table.cost(part.row, layout.dtype), table.shape)
    height = int(costs.max())
    most = [_most(costs, dimension) for dimension in range(costs.ndim)]
    shares = [-(-one.astype(object) * WHOLE // max(1, height)) for one in most]
    if not _covers(shares, height, costs):
        shares = [np.where(one > 0, WHOLE, 0) for one in shares]
    by_axis = zip(axes, shares, table.label, strict=True)
    return height, {axis: share.astype(np.int64)[label] for axis, share, label in by_axis}


def _most(costs: Whole, dimension: int) -> Whole:
    others = tuple(n for n in range(costs.ndim) if n != dimension)
    most: Whole = np.asarray(costs.max(axis=others))
    return most


def _covers(shares: Sequence[NDArray[Any]], height: int, costs: Whole) -> bool:
    """Whether the product of shares is at least the cost in every cell, in whole numbers."""
    if costs.size > N_COMPARED_MAX:
        return len(shares) == 1
    product: Whole = np.array(height, dtype=object)
    for share in shares:
        product = np.multiply.outer(product, share)
    return bool((costs.astype(object) * WHOLE ** len(shares) <= product).all())
