"""Exact answers: the rows of a block times the counts of its cells, in whole numbers.

Also their summed distance from a public reference.

Called by the gate alone, which keeps the results in locals of one function. int64 is enough: the
gate refuses in advance, by public bounds, everything that could exceed 2**62.

Proof: proofs/noise.md, "Exact answers".
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.source import CellCounts
from cube.classes import Tiles
from cube.pieces import Pieces
from cube.query import QueryBlock, Scope
from cube.schema import Schema
from cube.statistic import Distance, GaussianStatistic


def answer_bound(block: QueryBlock, schema: Schema) -> int:
    """A public bound on the magnitude of any exact answer of the block.

    It also bounds every intermediate sum and product: a partial product of non-zero factors is at
    most the whole product of their bounds, and ``LinearQuery.bound`` adds up the terms'.
    """
    return int(block.query.bound) * schema.n_records_max


def exact_answers(block: QueryBlock, counts: CellCounts, schema: Schema) -> list[int]:
    """Each row of the block, applied to the exact counts of the block's scope.

    Raises
    ------
    ValueError
        If the counts cannot be those of a table of the schema. The text reveals nothing of them.
    """
    check_counts(block.scope, counts, schema)
    contributions = weighed(block, counts.levels, counts.counts)
    labels = groups_of(block, counts.levels, counts.counts)
    inside = labels >= 0
    answers = np.zeros(block.n_rows, dtype=np.int64)
    np.add.at(answers, labels[inside], contributions[inside])
    return [int(answer) for answer in answers]


def weighed(
    block: QueryBlock, levels: Sequence[NDArray[np.int64]], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The contribution of some records to the block's query, (n,): counts times coefficients.

    Parameters
    ----------
    block : QueryBlock
    levels : sequence of (n,) ndarray of int64
        For each axis of the block's scope, the positions of their levels.
    counts : (n,) ndarray of int64
    """
    contributions = np.zeros_like(counts)
    for term in block.query.terms:
        product = counts * term.scale.numerator
        for factor in term.factors:
            product = product * _read(block.scope, levels, factor.axes, factor.numbers)
        contributions += product
    return contributions


def groups_of(
    block: QueryBlock, levels: Sequence[NDArray[np.int64]], like: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The group of some records, (n,), as many as `like`: a row of the block, or -1 for none."""
    if block.partition is None:
        return np.zeros_like(like)
    partition = block.partition
    return _read(block.scope, levels, partition.axes, partition.groups)


def _read(
    scope: Scope,
    levels: Sequence[NDArray[np.int64]],
    axes: Scope,
    numbers: NDArray[np.int64] | Pieces | Tiles,
) -> NDArray[np.int64]:
    """The numbers over some axes of a scope at given positions, (n,)."""
    found = tuple(levels[scope.index(name)] for name in axes)
    if isinstance(numbers, Pieces):
        return numbers.at(found[0])
    return numbers.at(found) if isinstance(numbers, Tiles) else numbers[found]


def distance_bound(distance: Distance, schema: Schema) -> int:
    """A public bound on an exact distance: a record moves one row by at most its coefficient."""
    return answer_bound(distance.block, schema) + sum(map(abs, distance.reference))


def statistic_bound(statistic: GaussianStatistic, schema: Schema) -> int:
    """A public bound on the magnitude of every number to which noise is added."""
    if isinstance(statistic, Distance):
        return distance_bound(statistic, schema)
    return answer_bound(statistic.block, schema)


def exact_distance(distance: Distance, counts: CellCounts, schema: Schema) -> int:
    """The sum, over the rows of a block, of the distance of each row from its reference.

    Raises
    ------
    ValueError
        As `exact_answers`.
    """
    exact = exact_answers(distance.block, counts, schema)
    return sum(abs(one - other) for one, other in zip(exact, distance.reference, strict=True))


def check_counts(scope: Scope, counts: CellCounts, schema: Schema) -> None:
    """Raise ValueError, with a text that reveals none of them, unless these counts are possible."""
    check_levels(scope, counts.levels, schema)
    if counts.counts.size and counts.counts.min() < 0:
        raise ValueError("the source answered with negative counts")
    # In floats the sum cannot wrap around, and at 2**40 records it is still exact.
    if counts.counts.astype(np.float64).sum() > schema.n_records_max:
        raise ValueError("the source holds more records than the schema allows")


def check_levels(scope: Scope, levels: Sequence[NDArray[np.int64]], schema: Schema) -> None:
    """Raise ValueError, as `check_counts`, unless these are levels of the scope's axes."""
    sizes = schema.sizes(scope)
    if len(levels) != len(sizes):
        raise ValueError("the source answered for other axes than it was asked for")
    for positions, size in zip(levels, sizes, strict=True):
        if positions.size and not (positions.min() >= 0 and positions.max() < size):
            raise ValueError("the source answered with levels that the schema does not have")
