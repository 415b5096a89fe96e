"""The least half-width that a family of counted groups can give rows, without reading it.

An unbiased sum of noisy counts gives every cell its coefficient: along the levels of a family the
shares of a cell add up to it. A group's coefficient is the share of each of its cells, so its
square is at least the sum of their squared shares over the size of the group; and the shares of one
cell are cheapest in proportion to the sizes of its groups. So the variance, in units of that of one
count, is at least

    sum over cells of coefficient**2  /  sum over levels of the largest group's size

That takes no algebra of groups, and says of most wide purchases that they cost too much. Where the
family has intervals in place of cells, only those cells count that lie in whole intervals.

A bound only: what a family does say of rows is in `hindsight.py`. Nothing here sees a noisy value,
or knows a price.
"""

import math
from collections.abc import Sequence
from functools import reduce
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import Tiles
from cube.query import Factor, Partition, QueryBlock
from cube.schema import Schema
from planner.measuring.weights import gaussian_quantile

# The quantile of a sum of Laplace variables is about between those of one of them and of a Gaussian
# variable, beyond both by less than a hundredth.
OF_QUANTILE = 0.95

_LARGEST: WeakKeyDictionary[QueryBlock, int] = WeakKeyDictionary()
# Of a row: the same rented rows are looked at with every family on a scope, at every purchase.
_MEAN_SQUARES: WeakKeyDictionary[QueryBlock, WeakKeyDictionary[QueryBlock, float]] = (
    WeakKeyDictionary()
)


def least_widths(
    family: Sequence[QueryBlock], blocks: Sequence[QueryBlock], confidence: float, schema: Schema
) -> list[float]:
    """At most the half-width of the widest row of each block, with the variance of every count 2.

    That is, with Laplace noise of scale 1, or as much Gaussian noise.

    Parameters
    ----------
    family : sequence of QueryBlock
        Counts of the products of nested partitions, the finest first.
    blocks : sequence of QueryBlock
        Rows within their scope.
    confidence : float
    schema : Schema
    """
    n_largest = sum(map(_largest_group, family))
    of_laplace = -math.log1p(-confidence) / math.sqrt(2)
    quantile = OF_QUANTILE * min(of_laplace, gaussian_quantile(confidence))
    squares = [_kept_mean_squares(family[0], block, schema) for block in blocks]
    return [quantile * math.sqrt(2 * of_row / n_largest) for of_row in squares]


def _kept_mean_squares(finest: QueryBlock, block: QueryBlock, schema: Schema) -> float:
    """The same as `_mean_squares`, once for a row; the finest groups have the schema's sizes."""
    kept = _MEAN_SQUARES.get(block)
    if kept is None:
        kept = _MEAN_SQUARES[block] = WeakKeyDictionary()
    found = kept.get(finest)
    if found is None:
        found = kept[finest] = _mean_squares(finest, block, schema)
    return found


def _mean_squares(finest: QueryBlock, block: QueryBlock, schema: Schema) -> float:
    """The sum of squared coefficients over the cells of whole groups, of the mean row.

    0 where it does not follow from single factors, so that nothing is said of the rows.
    """
    if len(block.query.terms) != 1 or finest.partition is None:
        return 0.0
    if block.partition is not None and not block.partition.covers_all:
        return 0.0  # factors and groups may leave out the same cells
    (term,) = block.query.terms
    held = {name for factor in term.factors for name in factor.axes}
    n_free = schema.n_cells(tuple(name for name in finest.scope if name not in held))
    squares = math.prod(_squares(factor, finest.partition) for factor in term.factors)
    return float(term.scale) ** 2 * squares * n_free / block.n_rows


def _squares(factor: Factor, finest: Partition) -> float:
    """The sum of squares of a factor within the groups that it does not cut."""
    values = np.square(factor.values, dtype=np.float64)
    if finest.n_groups == finest.n_cells:
        return float(values.sum())
    if len(factor.axes) > 1:
        return 0.0
    (starts,) = np.nonzero(np.diff(_along(finest, factor.axes[0]), prepend=-1))
    is_whole = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
    return float(np.add.reduceat(values, starts)[is_whole].sum())


def _along(partition: Partition, axis: str) -> NDArray[np.int64]:
    """A number for each level of an axis, the same within one group."""
    place = partition.axes.index(axis)
    if isinstance(partition.groups, Tiles):
        return partition.groups.along[place].dense()
    return np.moveaxis(partition.labels, place, 0).reshape(partition.shape[place], -1)[:, 0]


def _largest_group(counted: QueryBlock) -> int:
    """The number of cells in the largest group."""
    if counted not in _LARGEST:
        _LARGEST[counted] = _largest(counted.partition)
    return _LARGEST[counted]


def _largest(partition: Partition | None) -> int:
    if partition is None:
        raise ValueError("a family counts groups")
    groups = partition.groups
    if not isinstance(groups, Tiles):
        return int(np.bincount(partition.labels.ravel()).max())
    lengths = reduce(np.multiply.outer, [np.bincount(one.dense()) for one in groups.along])
    return int(np.bincount(groups.values.ravel(), lengths.ravel()).max())
