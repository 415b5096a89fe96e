"""Which levels a source may count together for a charge: those that none of its rows tells apart.

Computed from the rows' own factors and groups, which the gate charged for. A level on which every
row is 0 is not counted at all, so that rows outside of a condition never leave the source. Where a
row rises with the level, as a sum of a measure does, levels are counted each by itself.

Nothing private is here. Proof: proofs/noise.md, "Exact answers".
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.grouping import BY_ITSELF, NOT_COUNTED, Grouping, LevelRuns
from cube.classes import AxisClasses, Tiles
from cube.grid import Grid, arrays_of
from cube.pieces import Pieces
from cube.query import QueryBlock, Scope, counting
from cube.refusals import TooLarge
from cube.schema import Schema
from cube.statistic import Choice

# Of one read. A cell of four columns is 40 bytes, and three times as much while it is added up.
N_CELLS_READ_MAX: Final = 2**27

Bools = NDArray[np.bool_]


def grouping_for(blocks: Sequence[QueryBlock], schema: Schema) -> Grouping:
    """How cells are counted for blocks of one scope, so that all of their rows are answered.

    Raises
    ------
    ValueError
        If there is no block, or they have several scopes.
    """
    (scope,) = {block.scope for block in blocks}
    grid = Grid.undivided(scope, schema.sizes(scope)).refined(blocks)
    runs = (
        _runs(name, classes, blocks) for name, classes in zip(grid.axes, grid.classes, strict=True)
    )
    return Grouping(scope, tuple(runs))


def grouping_of_views(choice: Choice, scope: Scope, schema: Schema) -> Grouping:
    """How cells are counted for a choice's views of some axes: no level is left out."""
    views = (QueryBlock(counting(), view) for view in choice.views if view.axes[0] in scope)
    grid = Grid.undivided(scope, schema.sizes(scope)).refined(views)
    runs = (_joined(one.n_levels, one.starts, one.first_levels[one.of_run]) for one in grid.classes)
    return Grouping(scope, tuple(runs))


def groupings_for(
    blocks: Iterable[QueryBlock], schema: Schema
) -> tuple[tuple[Grouping, tuple[int, ...]], ...]:
    """What is read for some blocks, and the places of the blocks that are answered from each.

    Blocks of one scope are read together, unless that were more cells than may be read at once;
    then each is read by itself.
    """
    listed = list(blocks)
    places: dict[Scope, list[int]] = {}
    for place, block in enumerate(listed):
        places.setdefault(block.scope, []).append(place)
    found = []
    for some in places.values():
        together = grouping_for([listed[place] for place in some], schema)
        if len(some) == 1 or n_cells_read(together, schema) <= N_CELLS_READ_MAX:
            found.append((together, tuple(some)))
        else:
            found += [(grouping_for([listed[place]], schema), (place,)) for place in some]
    return tuple(found)


def n_cells_read(grouping: Grouping, schema: Schema) -> int:
    """A public bound on the cells that a source returns."""
    return min(grouping.n_cells_max, schema.n_records_max)


def check_read(block: QueryBlock, schema: Schema) -> None:
    """Raise TooLarge if a block needs more cells than are read at once, by public numbers."""
    # All levels are mostly few enough, and then classes need not be found.
    if min(math.prod(schema.sizes(block.scope)), schema.n_records_max) <= N_CELLS_READ_MAX:
        return
    n_cells = n_cells_read(grouping_for([block], schema), schema)
    if n_cells > N_CELLS_READ_MAX:
        raise TooLarge(
            f"This query would count up to {n_cells} cells; at most {N_CELLS_READ_MAX} "
            "are allowed.",
            hint="Ask for fewer groups, or group the sum of a measure by fewer columns.",
        )


def _runs(name: str, classes: AxisClasses, blocks: Sequence[QueryBlock]) -> LevelRuns:
    """How the levels of one axis are counted, which has these classes."""
    counted_as = classes.first_levels.copy()
    counted_as[_rising(name, classes, blocks)] = BY_ITSELF
    is_nothing = np.ones(classes.n_classes, dtype=np.bool_)
    for block in blocks:
        is_nothing &= _nothing_of(block, name, classes)
    counted_as[is_nothing] = NOT_COUNTED
    return _joined(classes.n_levels, classes.starts, counted_as[classes.of_run])


def _joined(n_levels: int, starts: NDArray[np.int64], counted_as: NDArray[np.int64]) -> LevelRuns:
    """The runs, with neighbours that are counted alike joined into one."""
    changes = np.append(True, counted_as[1:] != counted_as[:-1])
    return LevelRuns(n_levels, starts[changes], counted_as[changes])


def _rising(name: str, classes: AxisClasses, blocks: Sequence[QueryBlock]) -> Bools:
    """On which classes some array is not constant, (n_classes,)."""
    rises = np.zeros(classes.n_classes, dtype=np.bool_)
    for axes, numbers in arrays_of(blocks):
        if classes.degree and axes == (name,) and isinstance(numbers, Pieces):
            parts = classes.coefficients(numbers).reshape(classes.n_classes, classes.n_powers)
            rises |= parts[:, 1:].any(axis=1)
    return rises


def _nothing_of(block: QueryBlock, name: str, classes: AxisClasses) -> Bools:
    """On which classes of an axis every row of a block is 0 whatever else holds, (n_classes,)."""
    is_nothing = np.ones(classes.n_classes, dtype=np.bool_)
    for term in block.query.terms:
        along = [factor for factor in term.factors if name in factor.axes]
        # The factors of a term share no axis.
        is_nothing &= (
            _is_only(0, along[0].axes, along[0].numbers, name, classes) if along else False
        )
    partition = block.partition
    if partition is not None and name in partition.axes:
        is_nothing |= _is_only(-1, partition.axes, partition.groups, name, classes)
    return is_nothing


def _is_only(
    number: int,
    axes: Scope,
    numbers: NDArray[np.int64] | Pieces | Tiles,
    name: str,
    classes: AxisClasses,
) -> Bools:
    """On which classes of an axis an array over several has only this number, (n_classes,)."""
    if isinstance(numbers, Pieces):
        parts = classes.coefficients(numbers).reshape(classes.n_classes, classes.n_powers)
        alike: Bools = (parts[:, 0] == number) & ~parts[:, 1:].any(axis=1)
        return alike
    dimension = axes.index(name)
    if isinstance(numbers, Tiles):
        slices = numbers.values.take(numbers.along[dimension].at(classes.first_levels), dimension)
    else:
        slices = numbers.take(classes.first_levels, dimension)
    others = tuple(place for place in range(slices.ndim) if place != dimension)
    only: Bools = (slices == number).all(axis=others)
    return only
