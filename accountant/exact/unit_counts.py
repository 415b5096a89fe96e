"""Exact counts of units: in how many groups each unit has a row, with a bound on these groups.

Of a unit in more groups than may count, those come first that have the smallest numbers made of the
unit's digest and the group. So which of a unit's groups count depends on that unit's rows and the
key alone: a raise finds the same numbers again, and another unit changes nothing. No number that a
unit adds to is moved by more than one, and no more of them than the bound.

Called by the gate alone, which keeps the results in locals of one function. Proof: proofs/units.md,
"Distinct units".
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.exact.exact_answers import check_levels, groups_of, weighed
from accountant.source import UnitCells
from cube.schema import Schema
from cube.statistic import UnitCount

# Of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"): its
# increment, and the multipliers of its finalizer. Never changed: a raise must find the same groups.
INCREMENT: Final = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIERS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))


def exact_unit_counts(count: UnitCount, reach: int, cells: UnitCells, schema: Schema) -> list[int]:
    """How many units count in each group.

    Parameters
    ----------
    count : UnitCount
    reach : int
        The most groups in which a unit counts, as it is paid for.
    cells : UnitCells
        The cells of the scope of the groups, with the units that have rows there.
    schema : Schema

    Raises
    ------
    ValueError
        If the cells cannot be those of a table of the schema. The text reveals nothing of them.
    """
    block = count.block
    check_unit_cells(block.scope, cells, schema)
    groups = groups_of(block, cells.levels, cells.units)
    counts = weighed(block, cells.levels, np.ones_like(cells.units)) != 0
    inside = counts & (groups >= 0)
    if count.only_cut:
        inside &= cells.were_cut > 0
    # Of at most 2**40 units and 2**17 groups.
    pairs, first = np.unique(cells.units[inside] * block.n_rows + groups[inside], return_index=True)
    units, groups = np.divmod(pairs, block.n_rows)
    if block.n_rows > reach:
        digests = cells.digests[inside][first]
        groups = groups[_is_kept(units, groups, digests, reach)]
    return [int(found) for found in np.bincount(groups, minlength=block.n_rows)]


def check_unit_cells(scope: tuple[str, ...], cells: UnitCells, schema: Schema) -> None:
    """Raise ValueError, with a text that reveals none of them, unless these cells are possible."""
    check_levels(scope, cells.levels, schema)
    if not cells.units.size:
        return
    if min(cells.units.min(), cells.digests.min()) < 0:
        raise ValueError("the source answered with units that are not numbered from 0")
    if max(cells.units.size, int(cells.units.max()) + 1) > schema.n_records_max:
        raise ValueError("the source holds more records than the schema allows")


def _is_kept(
    units: NDArray[np.int64], groups: NDArray[np.int64], digests: NDArray[np.int64], reach: int
) -> NDArray[np.bool_]:
    """Which pairs of a unit and a group are among the first of the unit, (n,)."""
    order = np.lexsort((groups, mixed(digests, groups), units))
    ordered = units[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    lengths = np.diff(starts, append=ordered.size)
    rank = np.arange(ordered.size) - np.repeat(starts, lengths)
    is_kept = np.empty(ordered.size, dtype=np.bool_)
    is_kept[order] = rank < reach
    return is_kept


def mixed(digests: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number made of a unit's digest and a group, that looks random, (n,): splitmix64."""
    state = digests.astype(np.uint64) + (groups.astype(np.uint64) + np.uint64(1)) * INCREMENT
    for shift, multiplier in zip(SHIFTS, MULTIPLIERS, strict=False):
        state = (state ^ (state >> shift)) * multiplier
    found: NDArray[np.uint64] = state ^ (state >> SHIFTS[-1])
    return found
