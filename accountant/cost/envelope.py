"""A product that is nowhere below a cell function: a height, and a share of it along each axis.

    function at a cell  <=  height * product over axes of  share of the cell's class / WHOLE

The cost of a count of a box is such a product itself, with shares 0 and 1. Where a function is no
product, a share only says whether it is positive anywhere in the class.

Nothing here knows about weights, budgets or data. Proof: proofs/table_cost.md, "Boxes".
"""

from dataclasses import dataclass

import numpy as np

from accountant.cost.cell_function import CellFunction, Whole, whole_dtype
from cube.classes import AxisClasses, Indices
from cube.query import Scope

WHOLE = 2**12  # a share of everything; shares are rounded up
N_COMPARED_MAX = 2**12  # values; of a function with more, only where it is positive is used


@dataclass(frozen=True, eq=False, slots=True)
class Envelope:
    """A product of shares.

    Parameters
    ----------
    height : int
        The largest value of the function.
    axes : tuple of str
    classes : tuple of AxisClasses
        For each axis, of degree 0.
    shares : tuple of (n_classes,) ndarray
        For each axis, the share of each class, from 0 to `WHOLE`.
    """

    height: int
    axes: Scope
    classes: tuple[AxisClasses, ...]
    shares: tuple[Indices, ...]

    @classmethod
    def of(cls, function: CellFunction) -> "Envelope":
        """The envelope of a function that is not negative."""
        flat = function.flattened()
        height = int(flat.values.max())
        if not height:
            return cls(0, (), (), ())
        most = [_along(flat.values, dimension) for dimension in range(flat.values.ndim)]
        shares = tuple(_shares(one, height) for one in most)
        if not _is_above(shares, height, flat.values):
            shares = tuple(np.where(one > 0, WHOLE, 0) for one in shares)
        return cls(height, flat.axes, flat.classes, shares)


def _along(values: Whole, dimension: int) -> Whole:
    """The largest value in each class of one axis."""
    others = tuple(n for n in range(values.ndim) if n != dimension)
    most: Whole = np.asarray(values.max(axis=others)) if others else values
    return most


def _shares(most: Whole, height: int) -> Indices:
    dtype = whole_dtype(height * WHOLE)
    return (-(-most.astype(dtype) * WHOLE // height)).astype(np.int64)


def _is_above(shares: tuple[Indices, ...], height: int, values: Whole) -> bool:
    """Whether the product of the shares is nowhere below the values; exact, in whole numbers."""
    if len(shares) <= 1:
        return True
    if values.size > N_COMPARED_MAX:
        return False
    product: Whole = np.array(height, dtype=object)
    for one in shares:
        product = np.multiply.outer(product, one.astype(object))
    return bool((values.astype(object) * WHOLE ** len(shares) <= product).all())
