"""Exact answers: the rows of a block times the counts of its cells, in whole numbers.

Also their summed distance from a public reference.

Called by the gate alone, which keeps the results in locals of one function. int64 is enough: the
gate refuses in advance, by public bounds, everything that could exceed 2**62.

Proof: proofs/noise.md, "Exact answers".
"""

import numpy as np
from numpy.typing import NDArray

from accountant.source import CellCounts
from cube.block import QueryBlock
from cube.gaussian import GaussianStatistic
from cube.pieces import Pieces
from cube.query import Scope
from cube.schema import Schema
from cube.statistic import Distance
from cube.tiles import Tiles


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
    place = {name: dimension for dimension, name in enumerate(block.scope)}

    def read(axes: Scope, numbers: NDArray[np.int64] | Pieces | Tiles) -> NDArray[np.int64]:
        if isinstance(numbers, Pieces):
            return numbers.at(counts.levels[place[axes[0]]])
        levels = tuple(counts.levels[place[name]] for name in axes)
        return numbers.at(levels) if isinstance(numbers, Tiles) else numbers[levels]

    contributions = np.zeros_like(counts.counts)
    for term in block.query.terms:
        product = counts.counts * term.scale.numerator
        for factor in term.factors:
            product = product * read(factor.axes, factor.numbers)
        contributions += product
    if block.partition is None:
        return [int(contributions.sum())]
    labels = read(block.partition.axes, block.partition.groups)
    inside = labels >= 0
    answers = np.zeros(block.n_rows, dtype=np.int64)
    np.add.at(answers, labels[inside], contributions[inside])
    return [int(answer) for answer in answers]


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
    sizes = schema.sizes(scope)
    if len(counts.levels) != len(sizes):
        raise ValueError("a source answered for other axes than it was asked for")
    for positions, size in zip(counts.levels, sizes, strict=True):
        if positions.size and not (positions.min() >= 0 and positions.max() < size):
            raise ValueError("a source answered with levels that the schema does not have")
    if counts.counts.size and counts.counts.min() < 0:
        raise ValueError("a source answered with negative counts")
    # In floats the sum cannot wrap around, and at 2**40 records it is still exact.
    if counts.counts.astype(np.float64).sum() > schema.n_records_max:
        raise ValueError("a source holds more records than the schema allows")
