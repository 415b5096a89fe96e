"""What could be measured for a query: blocks of rows, and which strategies propose them.

    query        the rows that are asked for
    top_up       the earlier measurement that contributes most of the noise, raised
    cells        every cell of the query's scope
    cuboid       every cell of a larger scope, made of columns that are queried together
    dyadic       cells, and intervals of cells over an ordered column, so that a long range is a
                 sum of a few intervals

A candidate is only a list of blocks. The weight that each block needs, and its price, are computed
in `choose.py`. Nothing here sees a noisy value.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cube.axis import BooleanAxis, CategoryAxis
from cube.block import Partition, QueryBlock
from cube.query import Scope, counting
from cube.schema import Schema
from inference.history import counts_groups
from planner.measuring.strategy import Strategy

N_CUBOID_CELLS_MAX = 4096  # the most noisy counts that may be summed in one answer
N_CUBOIDS_MAX = 4  # larger scopes that are priced for one query
BRANCHING = 16  # children of an interval; Qardaji, Yang & Li 2013, "Understanding hierarchical
# methods for differentially private histograms", find 8 to 16 best for ranges

N_BLOCKS_KEPT = 256  # the same cells are needed again and again; they are built and named once


@dataclass(frozen=True, slots=True)
class Candidate:
    """Blocks that would be raised to one common weight.

    Parameters
    ----------
    name : str
        Its name in EXPLAIN.
    blocks : tuple of QueryBlock
    scope : tuple of str
        The columns of the queries that it can answer.
    """

    name: str
    blocks: tuple[QueryBlock, ...]
    scope: Scope


def query_itself(block: QueryBlock) -> Candidate:
    """The rows that are asked for, in lowest terms."""
    row, _ = block.primitive
    return Candidate("query", (row,), row.scope)


def wide_candidates(strategy: Strategy, scopes: list[Scope], schema: Schema) -> list[Candidate]:
    """What a strategy would measure instead of the query; `scopes` begins with the query's own."""
    found: list[Candidate] = []
    for place, scope in enumerate(scopes):
        if not scope or schema.n_cells(scope) > N_CUBOID_CELLS_MAX:
            continue
        name = "cells" if place == 0 else "cuboid"
        levels = hierarchy(scope, schema)
        if strategy is not Strategy.DYADIC or len(levels) == 1:
            found.append(Candidate(name, levels[:1], scope))
        if strategy is not Strategy.CELLS and len(levels) > 1:
            found.append(Candidate("dyadic", levels, scope))
    return found


def hierarchy(scope: Scope, schema: Schema) -> tuple[QueryBlock, ...]:
    """Every cell of `scope`, and coarser blocks over its longest ordered column if it has one."""
    sizes = schema.sizes(scope)
    ordered = [
        place
        for place, name in enumerate(scope)
        if not isinstance(schema.by_name[name], CategoryAxis | BooleanAxis)
    ]
    blocks = [_counted(scope, sizes, 0, 1)]
    if not ordered:
        return tuple(blocks)
    longest = max(ordered, key=lambda place: (sizes[place], scope[place]))
    width = BRANCHING
    while sizes[longest] > width * 2:
        blocks.append(_counted(scope, sizes, longest, width))
        width *= BRANCHING
    return tuple(blocks)


@lru_cache(maxsize=N_BLOCKS_KEPT)
def _counted(scope: Scope, sizes: tuple[int, ...], place: int, width: int) -> QueryBlock:
    """The count of every cell, with the levels of one axis grouped into intervals."""
    labels = np.zeros((), dtype=np.int64)
    for axis, size in enumerate(sizes):
        interval = np.arange(size, dtype=np.int64) // (width if axis == place else 1)
        labels = np.add.outer(labels * (int(interval[-1]) + 1), interval)
    return QueryBlock(counting(), Partition(scope, labels))


def is_every_cell(block: QueryBlock) -> bool:
    """Whether a block counts every cell of its scope."""
    partition = block.partition
    if partition is None or not counts_groups(block):
        return False
    return partition.n_groups == partition.n_cells
