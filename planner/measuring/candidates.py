"""Lists the blocks that could be measured for a query, by the strategies of a table's owner.

The strategies of a table's owner: what may be measured when the history does not suffice.

    query        the rows that are asked for
    top_up       the earlier measurement that contributes most of the noise, raised
    cells        every cell of the query's scope
    cuboid       every cell of a larger scope, made of columns that are queried together
    dyadic       cells, and intervals of cells over one or two ordered columns, so that a long range
                 is a sum of a few intervals; above some number of cells only intervals, and what
                 they leave of the query is a row beside them
    rest         that row alone, where the intervals are measured already
    stretches    on a table that grows: the same rows on the days before, raised, and on the new
    new          on a table that grows: the rows of groups by time that are not known yet

A candidate is only a list of blocks. The weight that each block needs, and its price, are computed
in `choose.py`. Nothing here sees a noisy value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import product

import numpy as np

from cube.axis import BooleanAxis, CategoryAxis
from cube.classes import Tiles
from cube.pieces import runs_of
from cube.query import Partition, QueryBlock, Scope, counting
from cube.schema import Schema


class Strategy(StrEnum):
    """How measurements are chosen; every choice depends on public things alone."""

    AUTO = "auto"
    """The cheapest that answers now, and cells of a scope once they would have paid for it."""

    QUERY = "query"
    """The query itself, at the smallest weight that meets its target together with the history."""

    CELLS = "cells"
    """Every cell of the query's scope, raised to a common weight."""

    DYADIC = "dyadic"
    """A hierarchy of intervals over the longest ordered column of the scope, or else its cells."""

    PAPER = "paper"
    """The query itself, as if there were no history (Xiao & Xiong 2012, algorithm 1)."""


N_CUBOID_CELLS_MAX = 2**13  # the most cells of several columns that are counted at once
N_COLUMN_CELLS_MAX = 2**14  # of one column: measured in about a second, and rarely
# Intervals where the cells are more: bought in about a second. What intervals leave of a box is a
# frame, which meets those of other boxes more often than the ends of a range meet others.
N_COARSE_COLUMN_CELLS_MAX = 2**13
N_COARSE_CUBOID_CELLS_MAX = 2**14
BRANCHING = 16  # children of an interval; Qardaji, Yang & Li 2013, "Understanding hierarchical
# methods for differentially private histograms", find 8 to 16 best for ranges

N_CUBOIDS_MAX = 4  # larger scopes that are priced for one query
N_DIVIDED_LEAST = 24  # levels of an ordered column: too few to gain from intervals of them
N_AXES_DIVIDED_MAX = 2
N_LEVELS_OF_AXIS = {1: (2, 3, 4), 2: (2,)}  # of the hierarchies over one column, and over two
N_BLOCKS_KEPT = 1024  # the same cells are needed again and again; they are built and named once


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
        levels = families(scope, schema)
        if may_be_whole(scope, schema) and (strategy is not Strategy.DYADIC or len(levels) == 1):
            name = "cells" if place == 0 else "cuboid"
            found.append(Candidate(name, levels[0], scope))
        if strategy is Strategy.DYADIC and len(levels) > 1:
            found.append(Candidate("dyadic", _of_branching(levels[1:]), scope))
        if strategy is Strategy.AUTO:
            found += [Candidate("dyadic", blocks, scope) for blocks in levels[1:]]
    return found


def may_be_whole(scope: Scope, schema: Schema) -> bool:
    """Whether all cells of a scope are few enough to be counted at once."""
    n_cells_max = N_COLUMN_CELLS_MAX if len(scope) == 1 else N_CUBOID_CELLS_MAX
    return bool(scope) and schema.n_cells(scope) <= n_cells_max


def families(scope: Scope, schema: Schema) -> tuple[tuple[QueryBlock, ...], ...]:
    """Every cell of `scope`, then hierarchies over its longest ordered columns, the finest first.

    A hierarchy of ``k`` levels along a column of ``n`` levels has intervals of ``1, b, b**2, ...``
    of them, with ``b`` about the ``k``-th root of ``n``. Over two columns it has the products.
    Where the cells are too many, intervals of a few levels take the place of the levels. There is
    no family where that does not make them few enough.
    """
    sizes, ordered = schema.sizes(scope), _ordered(scope, schema)
    if may_be_whole(scope, schema):
        return _families(scope, sizes, ordered, (1,) * len(scope))
    widths = _finest_widths(sizes, ordered)
    return () if widths is None else _families(scope, sizes, ordered, widths)


def _finest_widths(sizes: tuple[int, ...], ordered: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shortest intervals of ordered columns whose products are few; None if there are none.

    The columns are cut into about equally many intervals, those that are short into levels.
    """
    if not ordered:
        return None
    n_others = math.prod(size for place, size in enumerate(sizes) if place not in ordered)
    n_cells_max = N_COARSE_COLUMN_CELLS_MAX if len(sizes) == 1 else N_COARSE_CUBOID_CELLS_MAX
    most = n_cells_max // n_others
    if most < N_DIVIDED_LEAST ** len(ordered):
        return None
    widths = [1] * len(sizes)
    for rank, place in enumerate(reversed(ordered), start=1):  # the shortest first
        n_columns = len(ordered) - rank + 1
        n_intervals = int(most ** (1 / n_columns))
        widths[place] = -(-sizes[place] // n_intervals)
        most //= -(-sizes[place] // widths[place])
    return tuple(widths)


def _ordered(scope: Scope, schema: Schema) -> tuple[int, ...]:
    """The places of the longest ordered columns, the longest first."""
    sizes = schema.sizes(scope)
    places = (
        place
        for place, name in enumerate(scope)
        if not isinstance(schema.by_name[name], CategoryAxis | BooleanAxis)
        and sizes[place] >= N_DIVIDED_LEAST
    )
    by_length = sorted(places, key=lambda place: (-sizes[place], scope[place]))
    return tuple(by_length[:N_AXES_DIVIDED_MAX])


@lru_cache(maxsize=N_BLOCKS_KEPT)
def _families(
    scope: Scope, sizes: tuple[int, ...], ordered: tuple[int, ...], finest: tuple[int, ...]
) -> tuple[tuple[QueryBlock, ...], ...]:
    found: list[tuple[QueryBlock, ...]] = [(_counted(scope, sizes, finest),)]
    for n_axes in range(1, len(ordered) + 1):
        for n_levels in N_LEVELS_OF_AXIS[n_axes]:
            widths = [(width,) for width in finest]
            for place in ordered[:n_axes]:
                n_intervals = -(-sizes[place] // finest[place])
                branching = math.ceil(n_intervals ** (1 / n_levels))
                widths[place] = tuple(finest[place] * branching**power for power in range(n_levels))
            found.append(tuple(_counted(scope, sizes, one) for one in product(*widths)))
    return tuple(found)


def _of_branching(levels: Sequence[tuple[QueryBlock, ...]]) -> tuple[QueryBlock, ...]:
    """The hierarchy over one column with the fewest levels and no more children than `BRANCHING`.

    That is, the first whose second level has at least one interval for so many cells.
    """
    for blocks in levels[: len(N_LEVELS_OF_AXIS[1])]:
        if blocks[0].n_rows <= blocks[1].n_rows * BRANCHING:
            return blocks
    return levels[: len(N_LEVELS_OF_AXIS[1])][-1]


@lru_cache(maxsize=N_BLOCKS_KEPT)
def _counted(scope: Scope, sizes: tuple[int, ...], widths: tuple[int, ...]) -> QueryBlock:
    """The count of every cell, with the levels of each axis grouped into intervals."""
    intervals = [
        np.arange(size, dtype=np.int64) // width for size, width in zip(sizes, widths, strict=True)
    ]
    if len(scope) > 1 and math.prod(sizes) > N_COLUMN_CELLS_MAX:
        numbers = [int(one[-1]) + 1 for one in intervals]
        values = np.arange(math.prod(numbers), dtype=np.int64).reshape(numbers)
        tiles = Tiles(tuple(runs_of(one) for one in intervals), values)  # no two classes are alike
        return QueryBlock(counting(), Partition(scope, tiles))
    labels = np.zeros((), dtype=np.int64)
    for interval in intervals:
        labels = np.add.outer(labels * (int(interval[-1]) + 1), interval)
    return QueryBlock(counting(), Partition(scope, labels))
