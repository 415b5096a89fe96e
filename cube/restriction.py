"""Rows restricted to some levels of an axis: coefficients elsewhere are 0.

Nothing here decides which levels, or knows what was measured.
"""

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.pieces import Pieces, pieces_of
from cube.query import Factor, LinearQuery, Term

Indicator = NDArray[np.int64]  # for each level of the axis, 1 or 0


def restricted(block: QueryBlock, axis: str, levels: Indicator) -> QueryBlock:
    """The rows of a block with their coefficients at some levels alone; perhaps none are left."""
    terms = tuple(_restricted_term(term, axis, levels) for term in block.query.terms)
    return QueryBlock(LinearQuery(terms, block.query.constant), block.partition)


def touches(block: QueryBlock, axis: str, levels: Indicator) -> bool:
    """Whether the rows of a block have a coefficient at some levels; terms may cancel."""
    partition = block.partition
    if partition is not None and axis in partition.axes:
        labels = np.moveaxis(partition.labels, partition.axes.index(axis), 0)
        if (labels[levels != 0] < 0).all():
            return False
    return not restricted(block, axis, levels).query.is_constant


def _restricted_term(term: Term, axis: str, levels: Indicator) -> Term:
    factors = [
        _restricted_factor(one, axis, levels) if axis in one.axes else one for one in term.factors
    ]
    if axis not in term.scope:
        factors.append(Factor((axis,), levels))
    return Term(term.scale, tuple(factors))


def _restricted_factor(factor: Factor, axis: str, levels: Indicator) -> Factor:
    if isinstance(factor.numbers, Pieces):
        return Factor(factor.axes, pieces_of(factor.numbers.dense() * levels))
    shape = [-1 if name == axis else 1 for name in factor.axes]
    return Factor(factor.axes, factor.numbers * levels.reshape(shape))
