"""What could be measured for queries on many scopes: marginals on unions of them, and the queries.

Levels that none of the queries distinguishes are one level, a class: a marginal counts every
product of classes of its columns. A query along whose columns coefficients rise like polynomials,
or which has too many products of classes, is not read from marginals.

A candidate is only a block. Nothing here weighs, prices or sees a noisy value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cube.encoding import fingerprint
from cube.grid import Grid
from cube.query import Partition, QueryBlock, Scope, counting
from cube.schema import Schema
from inference.history import History, counts_groups

N_MARGINALS_MAX = 256
N_COLUMNS_MAX = 8  # of a marginal; an interaction of any of them is a part of a query's variance
N_CLASSES_MAX = 4096  # products of classes; as many as the cells of one candidate of a statement
N_LEVELS_MAX = 2**20  # products of levels, which a block of several columns lists


@dataclass(frozen=True, slots=True)
class BlockCandidate:
    """A block that may be bought, and how much of it was.

    Parameters
    ----------
    block : QueryBlock
    place : int, optional
        Of the earlier measurement that would be raised.
    bought : float
        Its weight; 0 if there is none.
    """

    block: QueryBlock
    place: int | None
    bought: float


@dataclass(frozen=True, eq=False)
class MarginalCandidates:
    """The candidates for some queries, and what each query is among them.

    Parameters
    ----------
    grid : Grid
        The classes of all columns of the queries that can be read from marginals.
    scopes : tuple of tuple of str
        Of the marginals.
    blocks : tuple of BlockCandidate
        The marginals, then the queries that are none of them.
    is_read : tuple of bool
        Whether each query can be read from marginals.
    own : tuple of int
        The place among the blocks of each query itself.
    """

    grid: Grid
    scopes: tuple[Scope, ...]
    blocks: tuple[BlockCandidate, ...]
    is_read: tuple[bool, ...]
    own: tuple[int, ...]

    def classes(self, scope: Scope) -> Grid:
        """The products of classes of a scope."""
        return _restricted(self.grid, scope)


def marginal_candidates(
    rows: Sequence[QueryBlock], schema: Schema, history: History
) -> MarginalCandidates:
    """The candidates for queries, given as blocks of whole-number rows."""
    grid = _common_classes(rows, schema)
    is_read = tuple(
        set(row.scope) <= set(grid.axes)
        and _restricted(grid, row.scope).n_cells <= N_CLASSES_MAX
        and _is_on_classes(row, schema)
        for row in rows
    )
    asked = {row.scope for row, known in zip(rows, is_read, strict=True) if known}
    scopes = _scopes(asked, grid, schema)
    blocks = [_marginal(_restricted(grid, scope), rows, history) for scope in scopes]
    places = {fingerprint(block): place for place, block in enumerate(blocks)}
    own = []
    for row in rows:
        own.append(places.setdefault(fingerprint(row), len(blocks)))
        if own[-1] == len(blocks):
            blocks.append(row)
    candidates = tuple(_candidate(block, history) for block in blocks)
    return MarginalCandidates(grid, tuple(scopes), candidates, is_read, tuple(own))


def _common_classes(rows: Sequence[QueryBlock], schema: Schema) -> Grid:
    """The classes that the queries distinguish, on the columns of those that can be read."""
    read = [row for row in rows if _is_on_classes(row, schema)]
    axes = tuple(sorted({name for row in read for name in row.scope}))
    return Grid.undivided(axes, schema.sizes(axes)).refined(read)


def _is_on_classes(row: QueryBlock, schema: Schema) -> bool:
    if len(row.scope) > N_COLUMNS_MAX or schema.n_cells(row.scope) > N_LEVELS_MAX:
        return False
    grid = Grid.undivided(row.scope, schema.sizes(row.scope)).refined([row])
    return grid.n_powers == 1 and grid.n_cells <= N_CLASSES_MAX


def _restricted(grid: Grid, scope: Scope) -> Grid:
    return Grid(scope, tuple(grid.classes[grid.position[name]] for name in scope))


def _scopes(asked: set[Scope], grid: Grid, schema: Schema) -> list[Scope]:
    """The scopes that are asked for, and unions of them that are not too large."""
    found, latest = set(asked), set(asked)
    while latest and len(found) < N_MARGINALS_MAX:
        unions = {tuple(sorted({*a, *b})) for a in latest for b in asked} - found
        sizes = {scope: _restricted(grid, scope).n_cells for scope in unions}
        fitting = [
            scope
            for scope in unions
            if len(scope) <= N_COLUMNS_MAX
            and sizes[scope] <= N_CLASSES_MAX
            and schema.n_cells(scope) <= N_LEVELS_MAX
        ]
        fitting.sort(key=lambda scope: (sizes[scope], scope))
        latest = set(fitting[: N_MARGINALS_MAX - len(found)])
        found |= latest
    return sorted(found, key=lambda scope: (len(scope), scope))


def _marginal(grid: Grid, rows: Sequence[QueryBlock], history: History) -> QueryBlock:
    """The counts of all products of classes, as they are asked for or were bought, if they were."""
    for block in (*rows, *_measured_on(grid.axes, history)):
        if block.scope == grid.axes and _counts_all(block, grid.n_cells):
            return block
    if not grid.axes:
        return QueryBlock(counting())
    classes = np.arange(grid.n_cells, dtype=np.int64).reshape(grid.shape)
    of_level = np.ix_(*(along.of_level for along in grid.classes))
    return QueryBlock(counting(), Partition(grid.axes, classes[of_level]))


def _measured_on(scope: Scope, history: History) -> Iterator[QueryBlock]:
    if scope in history.partition_scopes:
        yield from (one.block for one in history.partitions_on(scope))


def _counts_all(block: QueryBlock, n_cells: int) -> bool:
    """Whether a block counts every product of classes; its groups are unions of them."""
    if not counts_groups(block) or block.n_rows != n_cells:
        return False
    return block.partition is None or block.partition.covers_all


def _candidate(block: QueryBlock, history: History) -> BlockCandidate:
    place = history.raisable(block, is_gaussian=False)
    if place is None:
        return BlockCandidate(block, None, 0.0)
    return BlockCandidate(block, place, float(history[place].laplace_weight.exact))
